// ApplyDeltas, bit for bit, one body over all backends: elements against the definition in double,
// frequencies against the plain integer transform.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/method/deltas/scale.h"
#include "common/method/signs/votes.h"
#include "kernels/cpu/reference.h"
#include "kernels/deltas_view.h"
#include "tests/kernels/backends.h"

namespace distro {
namespace {

using testing::GuardedFloats;
using testing::ShapeCase;

// A result with `entries` entries per block (or as many as the tensor has positions), none in every
// fifth block, with random codes and signs, and all levels or only the first.
DeltaResult Result(const ShapeCase& shape, bool as_dct, int entries, bool all_levels) {
  DeltaResult result;
  for (int64_t b = 0; b < shape.blocks.count; ++b) {
    const BlockExtent extent =
        as_dct ? BlockExtent{} : ExtentOf(shape.matrix, shape.blocks.first + b);
    const int count = b % 5 == 4 ? 0 : entries;
    const size_t first = result.positions.size();
    for (int i = 0; i < count; ++i) {
      const int position = i * (kBlockElements / entries);
      if (!extent.Contains(position)) continue;
      result.positions.push_back(static_cast<uint16_t>(position));
      result.signs.push_back(SplitMix64(b, i) % 2 == 0 ? int8_t{-1} : int8_t{1});
      result.levels.push_back(static_cast<uint8_t>(all_levels ? i % kLevels : 0));
    }
    const bool empty = result.positions.size() == first;
    result.codes.push_back(empty ? uint8_t{0} : static_cast<uint8_t>((b * 37 + 90) % 256));
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

// The products of 20 and 24 bits are exact in double, and each rounding is one conversion.
void SlowElements(const BlockSite& site, const DeltaResult& result, int64_t block, float alpha,
                  absl::Span<float> p) {
  for (uint32_t i = result.offsets[block]; i < result.offsets[block + 1]; ++i) {
    const auto units = static_cast<double>(result.signs[i] *
                                           LevelMagnitude(result.codes[block], result.levels[i]));
    const auto step = static_cast<float>(units * (double{alpha} * std::ldexp(1.0, -44)));
    const int position = result.positions[i];
    float& x = p[site.offset + position / kBlockSide * site.stride + position % kBlockSide];
    x = static_cast<float>(double{x} - double{step});
  }
}

// docs/algorithm.md, "Every replica", line by line.
void SlowFrequencies(const BlockSite& site, const DeltaResult& result, int64_t block, float alpha,
                     absl::Span<float> p) {
  constexpr std::array<double, kLevels> kT = {65536, 46341, 32768, 23170, 16384, 11585, 8192, 5793};
  std::vector<uint16_t> positions;
  std::vector<int16_t> values;
  int shift = 0;
  for (int64_t sum = kMaxVotesPerBlock + 1; sum > kMaxVotesPerBlock;) {
    ++shift;
    sum = 0;
    positions.clear();
    values.clear();
    for (uint32_t i = result.offsets[block]; i < result.offsets[block + 1]; ++i) {
      const auto part =
          static_cast<int64_t>(std::floor(std::ldexp(kT[result.levels[i]], -shift) + 0.5));
      sum += part;
      positions.push_back(result.positions[i]);
      values.push_back(static_cast<int16_t>(result.signs[i] * part));
    }
  }
  if (values.empty()) return;
  std::array<int32_t, kBlockElements> u;
  reference::InverseInteger({.positions = positions.data(),
                             .values = values.data(),
                             .count = static_cast<int>(values.size()),
                             .shift = 0},
                            u.data());
  const auto unit = static_cast<float>(double{alpha} * std::ldexp(1.0, -44));
  const auto scale =
      static_cast<float>(static_cast<double>(ScaleOf(result.codes[block])) * double{unit});
  const auto step = static_cast<float>(std::ldexp(double{scale}, shift - 36));
  reference::Subtract(site, step, u.data(), p);
}

class ApplyDeltasTest : public testing::BackendTest {
 protected:
  absl::Status Apply(const ShapeCase& shape, const DeltaApplyOptions& options,
                     const DeltaResult& result, absl::Span<float> p) {
    return backend_->ApplyDeltas(shape.matrix, shape.blocks, options,
                                 ViewOf(result, {.first = 0, .count = shape.blocks.count}), p);
  }
  void ExpectAsDefined(const ShapeCase& shape, const DeltaApplyOptions& options,
                       const DeltaResult& result, const std::vector<float>& p) {
    GuardedFloats got(p);
    std::vector<float> want = p;
    ASSERT_TRUE(Apply(shape, options, result, got.span()).ok());
    for (int64_t b = 0; b < shape.blocks.count; ++b) {
      const BlockSite site = SiteOf(shape.matrix, shape.blocks.first + b);
      (options.as_dct ? SlowFrequencies : SlowElements)(site, result, b, options.alpha,
                                                        absl::MakeSpan(want));
    }
    EXPECT_TRUE(got.Intact());
    EXPECT_EQ(testing::Bits(got.span()), testing::Bits(want));
  }
};
INSTANTIATE_TEST_SUITE_P(All, ApplyDeltasTest, ::testing::ValuesIn(testing::AllBackends()),
                         testing::BackendName);

TEST_P(ApplyDeltasTest, MatchesDefinitionForShapes) {
  for (const ShapeCase& shape : testing::Shapes()) {
    SCOPED_TRACE(testing::Describe(shape));
    const std::vector<float> p =
        testing::OnlyInRange(shape, testing::RandomFloats(1, shape.matrix.elements), testing::kNan);
    for (const bool as_dct : {false, true}) {
      for (const auto& [entries, all_levels] :
           {std::pair{1, false}, {8, true}, {256, true}, {4096, true}, {4096, false}}) {
        ExpectAsDefined(shape, {.alpha = 0.65f, .as_dct = as_dct},
                        Result(shape, as_dct, entries, all_levels), p);
      }
    }
  }
}

TEST_P(ApplyDeltasTest, MatchesForAlphas) {
  const ShapeCase shape = testing::Matrix(64, 64);
  for (const float alpha : {0.0f, 0x1p-82f, 0x1.8p-60f, 1.0f, 3.0f}) {
    for (const bool as_dct : {false, true}) {
      ExpectAsDefined(shape, {.alpha = alpha, .as_dct = as_dct}, Result(shape, as_dct, 32, true),
                      testing::RandomFloats(2, 4096));
    }
  }
}

TEST_P(ApplyDeltasTest, TransformsFrequenciesBack) {
  const ShapeCase shape = testing::Matrix(64, 64);
  for (const int entries : {1, 32, 256, 1024}) {
    const DeltaResult result = Result(shape, true, entries, true);
    std::vector<float> p(shape.matrix.elements), values;
    ASSERT_TRUE(Apply(shape, {.alpha = 1, .as_dct = true}, result, absl::MakeSpan(p)).ok());
    for (int i = 0; i < entries; ++i) {
      values.push_back(std::ldexp(
          static_cast<float>(result.signs[i] * LevelMagnitude(result.codes[0], result.levels[i])),
          -kScaleUnitBits));
    }
    std::array<float, kBlockElements> x;
    reference::InverseTransform(entries, result.positions.data(), values.data(), x.data());
    double error = 0, size = 0;
    for (int i = 0; i < kBlockElements; ++i) {
      error += std::pow(double{x[i]} + double{p[i]}, 2);
      size += std::pow(double{x[i]}, 2);
    }
    EXPECT_LT(error, 1e-4 * size) << entries;  // a hundredth, of the whole
  }
}

TEST_P(ApplyDeltasTest, LeavesParametersOfBrokenBlock) {
  const ShapeCase shape = testing::Matrix(64, 70);  // the second block is 6 wide
  const std::vector<float> p = testing::RandomFloats(3, shape.matrix.elements);
  const auto broken = [&](bool as_dct, auto change) {
    DeltaResult result = {.offsets = {0, 2, 4},
                          .positions = {1, 2, 3, 5},
                          .signs = {1, -1, 1, 1},
                          .levels = {0, 1, 0, 7},
                          .codes = {100, 100}};
    change(result);
    std::vector<float> got = p;
    const absl::Status status =
        Apply(shape, {.alpha = 1, .as_dct = as_dct}, result, absl::MakeSpan(got));
    bool second_moved = false;
    for (size_t i = 0; i < p.size(); ++i) second_moved |= i % 70 >= 64 && got[i] != p[i];
    EXPECT_EQ(status.ok(), second_moved);
    EXPECT_NE(got, p) << "the first block is applied";
    return !status.ok();
  };
  for (const bool as_dct : {false, true}) {
    EXPECT_FALSE(broken(as_dct, [](DeltaResult&) {}));
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.positions[3] = 3; })) << "not ascending";
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.positions[3] = 4096; }));
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.positions[3] = 65535; }));
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.signs[2] = 0; }));
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.signs[2] = 2; }));
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.levels[2] = kLevels; }));
    EXPECT_TRUE(broken(as_dct, [](DeltaResult& r) { r.levels[2] = 255; }));
    EXPECT_EQ(broken(as_dct, [](DeltaResult& r) { r.positions[3] = 6; }), !as_dct)
        << "an element outside the tensor, a frequency inside";
  }
}

}  // namespace
}  // namespace distro
