// The element operations of deltas: what is chosen, what comes back out, and, bit for bit, what
// replicas apply.
#include "kernels/cpu/deltas.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "common/update/combine_deltas.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::Bits;
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

TEST_P(AppendLargestTest, TheLargestOfEveryBlockAreChosenWithTheirSignsAndScale) {
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
                                           Shape{Matrix(65, 65), 200}, Shape{Matrix(3, 5), 32},
                                           Shape{{.rows = 3, .cols = 64, .elements = 131}, 32},
                                           Shape{{.rows = 1, .cols = 64, .elements = 1}, 8}));

TEST(AppendLargestTest, ACapHoldsAndWhatIsNextToNothingIsEmpty) {
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
  // As if an empty block stood before: blocks 1 and 2 of the update, 0 and 1 of the result.
  const DeltaResult result = {.offsets = {0, 2, 4},
                              .positions = {2, 3, 5, 6},
                              .signs = {1, 1, 1, 1},
                              .levels = {0, 0, 0, 0},
                              .codes = {9, 9}};
  SubtractReturned(matrix, {.first = 0, .count = 2}, update, 1, result, 0, absl::MakeSpan(e));
  const float q = std::ldexp(static_cast<float>(ScaleOf(200)), -44);
  std::vector<float> expected(matrix.elements, 1);
  expected[3] = 1 + q;
  expected[64 + 5] = 1 - q;  // position 6 of the second block is outside
  EXPECT_EQ(e, expected);
}

// A result with every code and level.
DeltaResult AllSteps(int64_t blocks) {
  DeltaResult result;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < 64; ++i) {
      result.positions.push_back(static_cast<uint16_t>(61 * i));
      result.signs.push_back(i % 3 == 0 ? int8_t{-1} : int8_t{1});
      result.levels.push_back(static_cast<uint8_t>(i % kLevels));
    }
    result.codes.push_back(static_cast<uint8_t>((b * 37 + 255) % 256));
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

// The definition, in double: the products of 20 and 24 bits are exact there, and each rounding is
// one conversion.
std::vector<float> SlowApply(const MatrixShape& matrix, const DeltaResult& result, float alpha,
                             std::vector<float> p) {
  for (int64_t b = 0; b < matrix.Blocks(); ++b) {
    const int64_t top = b / matrix.BlocksAcross() * 64, left = b % matrix.BlocksAcross() * 64;
    for (uint32_t i = result.offsets[b]; i < result.offsets[b + 1]; ++i) {
      const auto units =
          static_cast<double>(result.signs[i] * LevelMagnitude(result.codes[b], result.levels[i]));
      const auto step = static_cast<float>(units * (double{alpha} * std::ldexp(1.0, -44)));
      const int position = result.positions[i];
      float& x = p[(top + position / 64) * matrix.cols + left + position % 64];
      x = static_cast<float>(double{x} - double{step});
    }
  }
  return p;
}

TEST(ApplyDeltasTest, EveryReplicaMovesByTheSameBits) {
  const MatrixShape matrix = Matrix(128, 256);
  const DeltaResult result = AllSteps(matrix.Blocks());
  for (const float alpha : {1.0f, 0.65f, 3.0f, 1e-30f}) {
    const std::vector<float> p = RandomFloats(9, matrix.elements);
    const std::vector<float> want = SlowApply(matrix, result, alpha, p);
    const StepTable table(alpha);
    std::vector<float> got = p;
    ApplyDeltas(matrix, {.first = 0, .count = matrix.Blocks()}, result, 0, table,
                absl::MakeSpan(got));
    EXPECT_EQ(Bits(got), Bits(want)) << alpha;
    // In two parts, whose second begins inside the result.
    std::vector<float> parts = p;
    ApplyDeltas(matrix, {.first = 0, .count = 3}, result, 0, table, absl::MakeSpan(parts));
    ApplyDeltas(matrix, {.first = 3, .count = matrix.Blocks() - 3}, result, 3, table,
                absl::MakeSpan(parts));
    EXPECT_EQ(Bits(parts), Bits(want)) << alpha;
  }
}

#if defined(__x86_64__)
TEST(ApplyDeltasTest, TheCallersFloatingPointEnvironmentDoesNotMatter) {
  const MatrixShape matrix = Matrix(64, 64);
  const DeltaResult result = AllSteps(1);
  std::vector<float> p = RandomFloats(3, matrix.elements);
  for (size_t i = 0; i < p.size(); i += 2) p[i] *= 0x1p-120f;  // denormals
  const auto apply = [&] {
    std::vector<float> moved = p;
    const StepTable table(0x1.8p-90f);
    ApplyDeltas(matrix, {.first = 0, .count = 1}, result, 0, table, absl::MakeSpan(moved));
    return Bits(moved);
  };
  const std::vector<uint32_t> want = apply();
  const unsigned before = _mm_getcsr();
  for (const unsigned bits : {0x8040u, 0x4000u, 0x2000u}) {  // FTZ and DAZ, upward, downward
    _mm_setcsr(before | bits);
    const std::vector<uint32_t> got = apply();
    _mm_setcsr(before);
    EXPECT_EQ(got, want) << bits;
  }
}
#endif

}  // namespace
}  // namespace distro
