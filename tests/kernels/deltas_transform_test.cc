// Selection and error feedback of the deltas method for tensors sent as DCT, compared with the
// reference transforms.
#include "kernels/cpu/deltas_transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/method/deltas/scale.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/reference.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using ::testing::Each;

MatrixShape Matrix(int64_t rows, int64_t cols) {
  return {.rows = rows, .cols = cols, .elements = rows * cols};
}
BlockRange All(const MatrixShape& matrix) { return {.first = 0, .count = matrix.Blocks()}; }
DeltaUpdate Empty(int k) { return {.k = k, .positions = {}, .signs = {}, .codes = {}}; }

using Block = std::array<float, kBlockElements>;

// Of a block padded with zeros, by the definition.
Block Dct(const MatrixShape& matrix, int64_t block, absl::Span<const float> a) {
  const BlockSite site = SiteOf(matrix, block);
  Block x{}, c;
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
    std::copy_n(a.begin() + site.offset + r * site.stride, cols, x.begin() + r * kBlockSide);
  }
  reference::ForwardTransform(x.data(), c.data());
  return c;
}

void SubtractAt(const BlockSite& site, const Block& x, absl::Span<float> e) {
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
    for (int c = 0; c < cols; ++c) e[site.offset + r * site.stride + c] -= x[r * kBlockSide + c];
  }
}

class DeltaTransformTest : public ::testing::TestWithParam<VectorKernels> {
 protected:
  DeltaTransform transform_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Widths, DeltaTransformTest, ::testing::ValuesIn(SupportedVectorKernels()),
                         [](const auto& width) { return std::string(width.param.name); });

TEST_P(DeltaTransformTest, ChoosesLargestFrequencies) {
  for (const MatrixShape& matrix : {Matrix(64, 64), Matrix(130, 70), Matrix(3, 5),
                                    MatrixShape{.rows = 3, .cols = 64, .elements = 131}}) {
    const std::vector<float> a = testing::RandomFloats(3, matrix.elements);
    const int k = 16;
    DeltaUpdate update = Empty(k);
    transform_.AppendLargest(matrix, a, 255, &update);
    ASSERT_EQ(ValidateDeltaUpdate(update, std::vector<uint8_t>(matrix.Blocks(), 255)),
              absl::OkStatus());
    for (int64_t b = 0; b < matrix.Blocks(); ++b) {
      const Block c = Dct(matrix, b, a);
      std::vector<float> magnitudes;
      for (const float x : c) magnitudes.push_back(std::abs(x));
      std::ranges::nth_element(magnitudes, magnitudes.begin() + k - 1, std::greater<>());
      const float least = magnitudes[k - 1], near = 1e-5f * magnitudes[0];
      int64_t sum = 0;
      for (int i = 0; i < k; ++i) {
        const float value = c[update.PositionsOf(b)[i]];
        EXPECT_GE(std::abs(value), least - near);
        EXPECT_EQ(update.SignsOf(b)[i], value < 0 ? -1 : 1);
        sum += ScaleUnits(value);
      }
      EXPECT_NEAR(update.codes[b], *ChooseScale(sum, k), 1);
    }
  }
}

TEST_P(DeltaTransformTest, KeepsCapAndEmptyBlock) {
  std::vector<float> a(2 * 4096, 0);
  a[5] = 0.25f;  // of the first block
  DeltaUpdate update = Empty(2);
  transform_.AppendLargest(Matrix(64, 128), a, 77, &update);
  EXPECT_THAT(update.codes, ::testing::ElementsAre(77, 0));
  EXPECT_FALSE(update.empty(0));
  EXPECT_TRUE(update.empty(1));
  EXPECT_THAT(update.PositionsOf(1), Each(0));
}

TEST_P(DeltaTransformTest, ClampsOverflow) {
  std::vector<float> a(4096);
  for (size_t i = 0; i < a.size(); ++i) a[i] = i % 3 == 0 ? -3e38f : 3e38f;
  DeltaUpdate update = Empty(4);
  transform_.AppendLargest(Matrix(64, 64), a, 255, &update);
  EXPECT_EQ(update.codes[0], 255);
  EXPECT_EQ(ValidateDeltaUpdate(update, std::vector<uint8_t>{255}), absl::OkStatus());
}

TEST_P(DeltaTransformTest, OnlyFrequenciesThatCameBackLeaveTheBuffer) {
  const MatrixShape matrix = Matrix(70, 64);
  const std::vector<float> before = testing::RandomFloats(7, matrix.elements);
  DeltaUpdate update = Empty(8);
  transform_.AppendLargest(matrix, before, 255, &update);
  DeltaResult result = ResultOf(update);
  result.positions.erase(result.positions.begin() + 3);  // of the first block
  for (size_t i = 1; i < result.offsets.size(); ++i) --result.offsets[i];
  std::vector<float> e = before, want = before;
  const BlockRange all = All(matrix);
  transform_.SubtractReturned(matrix, all, ViewOf(update, all), ViewOf(result, all),
                              absl::MakeSpan(e));
  for (int64_t b = 0; b < matrix.Blocks(); ++b) {
    std::vector<uint16_t> positions;
    std::vector<float> values;
    for (int i = 0; i < update.k; ++i) {
      if (b == 0 && i == 3) continue;
      positions.push_back(update.PositionsOf(b)[i]);
      values.push_back(std::ldexp(
          static_cast<float>(update.SignsOf(b)[i] * ScaleOf(update.codes[b])), -kScaleUnitBits));
    }
    Block x;
    reference::InverseTransform(static_cast<int>(values.size()), positions.data(), values.data(),
                                x.data());
    SubtractAt(SiteOf(matrix, b), x, absl::MakeSpan(want));
  }
  const float near = 1e-5f * std::abs(*std::ranges::max_element(before));
  for (size_t i = 0; i < e.size(); ++i) ASSERT_NEAR(e[i], want[i], near) << i;
}

}  // namespace
}  // namespace distro
