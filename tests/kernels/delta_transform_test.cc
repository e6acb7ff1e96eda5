// Deltas of blocks that travel as their DCT: what is chosen and what comes back out, against the
// plain transforms, and what replicas apply, bit for bit at every vector width.
#include "kernels/cpu/delta_transform.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "common/update/scale.h"
#include "common/update/votes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/reference.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::Bits;
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
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    std::copy_n(a.begin() + site.offset + r * site.stride, cols, x.begin() + r * kBlockSide);
  }
  reference::ForwardTransform(x.data(), c.data());
  return c;
}

void SubtractAt(const BlockSite& site, const Block& x, absl::Span<float> e) {
  for (int r = 0; r < site.rows; ++r) {
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    for (int c = 0; c < cols; ++c) e[site.offset + r * site.stride + c] -= x[r * kBlockSide + c];
  }
}

class DeltaTransformTest : public ::testing::TestWithParam<VectorKernels> {
 protected:
  DeltaTransform transform_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Widths, DeltaTransformTest, ::testing::ValuesIn(SupportedVectorKernels()),
                         [](const auto& width) { return std::string(width.param.name); });

TEST_P(DeltaTransformTest, TheLargestFrequenciesOfEveryBlockAreSentWithSignsAndScale) {
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

TEST_P(DeltaTransformTest, ACapHoldsAndABlockOfZerosIsEmpty) {
  std::vector<float> a(2 * 4096, 0);
  a[5] = 0.25f;  // of the first block
  DeltaUpdate update = Empty(2);
  transform_.AppendLargest(Matrix(64, 128), a, 77, &update);
  EXPECT_THAT(update.codes, ::testing::ElementsAre(77, 0));
  EXPECT_FALSE(update.empty(0));
  EXPECT_TRUE(update.empty(1));
  EXPECT_THAT(update.PositionsOf(1), Each(0));
}

TEST_P(DeltaTransformTest, AFrequencyThatOverflowsCountsAsOne) {
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
  transform_.SubtractReturned(matrix, All(matrix), update, 0, result, 0, absl::MakeSpan(e));
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

// A result with `entries` entries a block: none in every fifth, all levels or one.
DeltaResult Result(int64_t blocks, int entries, bool all_levels) {
  DeltaResult result;
  for (int64_t b = 0; b < blocks; ++b) {
    const int count = b % 5 == 4 ? 0 : entries;
    for (int i = 0; i < count; ++i) {
      result.positions.push_back(static_cast<uint16_t>(i * (kBlockElements / entries)));
      result.signs.push_back(SplitMix64(b, i) % 2 == 0 ? int8_t{-1} : int8_t{1});
      result.levels.push_back(static_cast<uint8_t>(all_levels ? i % kLevels : 0));
    }
    result.codes.push_back(count == 0 ? uint8_t{0} : static_cast<uint8_t>((b * 37 + 90) % 256));
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

// docs/algorithm.md, "Every replica", block by block.
void SlowApply(const MatrixShape& matrix, const DeltaResult& result, float alpha,
               absl::Span<float> p) {
  for (int64_t b = 0; b < matrix.Blocks(); ++b) {
    std::vector<uint16_t> positions;
    std::vector<int16_t> values;
    int shift = 0;
    for (int64_t sum = kMaxVotesPerBlock + 1; sum > kMaxVotesPerBlock;) {
      ++shift;
      sum = 0;
      positions.clear();
      values.clear();
      for (uint32_t i = result.offsets[b]; i < result.offsets[b + 1]; ++i) {
        const auto part = static_cast<int64_t>(std::floor(
            std::ldexp(static_cast<double>(kLevelParts[result.levels[i]]), -shift) + 0.5));
        sum += part;
        positions.push_back(result.positions[i]);
        values.push_back(static_cast<int16_t>(result.signs[i] * part));
      }
    }
    if (values.empty()) continue;
    std::array<int32_t, kBlockElements> u;
    reference::InverseInteger({.positions = positions.data(),
                               .values = values.data(),
                               .count = static_cast<int>(values.size()),
                               .shift = 0},
                              u.data());
    const auto unit = static_cast<float>(double{alpha} * std::ldexp(1.0, -44));
    const auto scale =
        static_cast<float>(static_cast<double>(ScaleOf(result.codes[b])) * double{unit});
    const auto step = static_cast<float>(std::ldexp(double{scale}, shift - 36));
    reference::Subtract(SiteOf(matrix, b), step, u.data(), p);
  }
}

TEST_P(DeltaTransformTest, EveryReplicaMovesByTheSameBits) {
  for (const MatrixShape& matrix : {Matrix(128, 192), Matrix(70, 130), Matrix(1, 6)}) {
    for (const auto& [entries, all_levels] :
         {std::pair{1, false}, {8, true}, {256, true}, {4096, true}, {4096, false}}) {
      const DeltaResult result = Result(matrix.Blocks(), entries, all_levels);
      for (const float alpha : {1.0f, 0.65f, 0x1p-82f}) {
        const std::vector<float> p = testing::RandomFloats(9, matrix.elements);
        std::vector<float> got = p, want = p;
        transform_.Apply(matrix, All(matrix), result, 0, alpha, absl::MakeSpan(got));
        SlowApply(matrix, result, alpha, absl::MakeSpan(want));
        ASSERT_EQ(Bits(got), Bits(want)) << entries << " entries, alpha " << alpha;
      }
    }
  }
}

TEST_P(DeltaTransformTest, TheStepIsTheInverseTransformOfTheResult) {
  const MatrixShape matrix = Matrix(64, 64);
  for (const int entries : {1, 32, 256, 1024}) {
    const DeltaResult result = Result(1, entries, true);
    std::vector<float> p(matrix.elements);
    transform_.Apply(matrix, All(matrix), result, 0, 1, absl::MakeSpan(p));
    std::vector<float> values;
    for (int i = 0; i < entries; ++i) {
      values.push_back(std::ldexp(
          static_cast<float>(result.signs[i] * LevelMagnitude(result.codes[0], result.levels[i])),
          -kScaleUnitBits));
    }
    Block x;
    reference::InverseTransform(entries, result.positions.data(), values.data(), x.data());
    double error = 0, size = 0;
    for (int i = 0; i < kBlockElements; ++i) {
      error += std::pow(double{x[i]} + double{p[i]}, 2);
      size += std::pow(double{x[i]}, 2);
    }
    EXPECT_LT(error, 1e-4 * size) << entries;  // a hundredth, of the whole
  }
}

TEST_P(DeltaTransformTest, ARangeBeginsInsideTheResult) {
  const MatrixShape matrix = Matrix(128, 192);
  const DeltaResult result = Result(matrix.Blocks(), 32, true);
  const std::vector<float> p = testing::RandomFloats(9, matrix.elements);
  std::vector<float> whole = p, parts = p;
  transform_.Apply(matrix, All(matrix), result, 0, 1, absl::MakeSpan(whole));
  transform_.Apply(matrix, {.first = 0, .count = 2}, result, 0, 1, absl::MakeSpan(parts));
  transform_.Apply(matrix, {.first = 2, .count = 4}, result, 2, 1, absl::MakeSpan(parts));
  EXPECT_EQ(Bits(parts), Bits(whole));
}

#if defined(__x86_64__)
TEST_P(DeltaTransformTest, TheCallersFloatingPointEnvironmentDoesNotMatter) {
  const MatrixShape matrix = Matrix(64, 64);
  const DeltaResult result = Result(1, 32, true);
  std::vector<float> p = testing::RandomFloats(3, matrix.elements);
  for (size_t i = 0; i < p.size(); i += 2) p[i] *= 0x1p-128f;  // denormals
  const auto apply = [&] {
    std::vector<float> moved = p;
    transform_.Apply(matrix, All(matrix), result, 0, 0x1.8p-60f, absl::MakeSpan(moved));
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
