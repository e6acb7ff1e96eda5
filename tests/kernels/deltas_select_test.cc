// Selection and error feedback of the deltas method for tensors sent as elements.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "common/method/deltas/combine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/deltas_compress.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using ::testing::ElementsAre;

MatrixShape Matrix(int64_t rows, int64_t cols) {
  return {.rows = rows, .cols = cols, .elements = rows * cols};
}

std::vector<float> RandomFloats(uint64_t seed, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = SplitMix64(seed, i);
    values[i] = std::ldexp(static_cast<float>(static_cast<int64_t>(random >> 40) - (1 << 23)),
                           -35 - static_cast<int>(random % 8));
  }
  return values;
}

// The positions of a block's record by a full sort.
std::vector<uint16_t> SlowPositions(const MatrixShape& matrix, int64_t block,
                                    absl::Span<const float> a, int k) {
  const BlockExtent extent = ExtentOf(matrix, block);
  const int64_t top = block / matrix.BlocksAcross() * 64, left = block % matrix.BlocksAcross() * 64;
  std::vector<int> inside, outside;
  for (int position = 0; position < kBlockElements; ++position)
    (extent.Contains(position) ? inside : outside).push_back(position);
  const auto magnitude = [&](int position) {
    return std::abs(a[(top + position / 64) * matrix.cols + left + position % 64]);
  };
  std::ranges::stable_sort(inside, [&](int p, int q) { return magnitude(p) > magnitude(q); });
  const int chosen = std::min<int>(k, static_cast<int>(inside.size()));
  std::vector<uint16_t> positions(inside.begin(), inside.begin() + chosen);
  positions.insert(positions.end(), outside.begin(), outside.begin() + (k - chosen));
  std::ranges::sort(positions);
  return positions;
}

struct Shape {
  MatrixShape matrix;
  int k;
};
class AppendLargestTest : public ::testing::TestWithParam<Shape> {};

TEST_P(AppendLargestTest, ChoosesLargestOfBlocks) {
  const auto& [matrix, k] = GetParam();
  std::vector<float> a = RandomFloats(5, matrix.elements);
  for (size_t i = 0; i < a.size(); i += 7) a[i] = a[i / 2];  // ties
  DeltaUpdate update{.k = k, .positions = {}, .signs = {}, .codes = {}};
  AppendLargest(matrix, a, 255, &update);
  std::vector<BlockExtent> extents;
  for (int64_t b = 0; b < matrix.Blocks(); ++b) extents.push_back(ExtentOf(matrix, b));
  ASSERT_EQ(ValidateDeltaUpdate(update, std::vector<uint8_t>(extents.size(), 255)),
            absl::OkStatus());
  for (int64_t b = 0; b < matrix.Blocks(); ++b) {
    const auto positions = absl::MakeSpan(update.positions).subspan(b * k, k);
    EXPECT_THAT(positions, ::testing::ElementsAreArray(SlowPositions(matrix, b, a, k)));
    const int64_t top = b / matrix.BlocksAcross() * 64, left = b % matrix.BlocksAcross() * 64;
    int64_t sum = 0;
    int inside = 0;
    for (int i = 0; i < k; ++i) {
      if (!extents[b].Contains(positions[i])) continue;
      const float x = a[(top + positions[i] / 64) * matrix.cols + left + positions[i] % 64];
      EXPECT_EQ(update.signs[b * k + i], x < 0 ? -1 : 1);
      sum += ScaleUnits(x);
      ++inside;
    }
    EXPECT_EQ(update.codes[b], ChooseScale(sum, inside)) << "of those inside alone";
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, AppendLargestTest,
                         ::testing::Values(Shape{Matrix(64, 64), 32}, Shape{Matrix(130, 70), 1},
                                           Shape{Matrix(130, 70), 8}, Shape{Matrix(130, 70), 32},
                                           Shape{Matrix(130, 70), 128}, Shape{Matrix(130, 70), 512},
                                           Shape{Matrix(64, 64), 3000}, Shape{Matrix(65, 65), 200},
                                           Shape{Matrix(3, 5), 32},
                                           Shape{{.rows = 3, .cols = 64, .elements = 131}, 32},
                                           Shape{{.rows = 3, .cols = 64, .elements = 131}, 128},
                                           Shape{{.rows = 1, .cols = 64, .elements = 1}, 8}));

TEST(AppendLargestTest, KeepsCapAndEmptiesTinyBlock) {
  std::vector<float> a(2 * 4096, 0);
  a[0] = -0.25f;
  a[64] = std::ldexp(1.0f, -36);  // the second block: a mean of 2^-44 * 256 / 2 over two
  DeltaUpdate update{.k = 2, .positions = {}, .signs = {}, .codes = {}};
  AppendLargest(Matrix(64, 128), a, 77, &update);
  EXPECT_THAT(update.codes, ElementsAre(77, 0));
  EXPECT_THAT(update.positions, ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(update.signs, ElementsAre(-1, 1, 0, 0)) << "a single 0 counts as +";
}

TEST(SubtractReturnedTest, OnlyWhatCameBackLeavesTheBuffer) {
  const MatrixShape matrix = Matrix(64, 70);  // the second block is 6 wide
  std::vector<float> e(matrix.elements, 1);
  const DeltaUpdate update = {.k = 2,
                              .positions = {9, 9, 3, 100, 5, 6},
                              .signs = {0, 0, -1, 1, 1, 1},
                              .codes = {0, 200, 200}};
  // Of both, blocks 1 and 2.
  const DeltaResult result = {.offsets = {0, 1, 3, 5},
                              .positions = {3, 2, 3, 5, 6},
                              .signs = {1, 1, 1, 1, 1},
                              .levels = {0, 0, 0, 0, 0},
                              .codes = {9, 9, 9}};
  SubtractReturned(matrix, {.first = 0, .count = 2}, ViewOf(update, {.first = 1, .count = 2}),
                   ViewOf(result, {.first = 1, .count = 2}), absl::MakeSpan(e));
  const float q = std::ldexp(static_cast<float>(ScaleOf(200)), -44);
  std::vector<float> expected(matrix.elements, 1);
  expected[3] = 1 + q;
  expected[64 + 5] = 1 - q;  // position 6 of the second block is outside
  EXPECT_EQ(e, expected);
}

}  // namespace
}  // namespace distro
