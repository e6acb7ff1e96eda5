#include "common/method/deltas/combine.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "common/base/random.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr BlockExtent kCorner = {.rows = 2, .cols = 3, .last_cols = 1};  // 4 elements

// --- What an update and a result may be -----------------------------------------------------

TEST(DeltaUpdateTest, RefusesBadRecord) {
  const std::vector<uint8_t> caps = {9};
  const DeltaUpdate good = {
      .k = 6, .positions = {0, 1, 2, 3, 4, 64}, .signs = {-1, 1, -1, 1, 1, -1}, .codes = {9}};
  EXPECT_EQ(ValidateDeltaUpdate(good, caps), absl::OkStatus());

  const auto fault_of = [&](DeltaUpdate update) {
    const absl::Status status = ValidateDeltaUpdate(update, caps);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  DeltaUpdate bad = good;
  bad.codes[0] = 10;
  EXPECT_THAT(fault_of(bad), HasSubstr("scale code 10 is above the cap 9"));
  bad = good;
  bad.signs[2] = 0;
  EXPECT_THAT(fault_of(bad), HasSubstr("a sign is neither + nor -"));
  bad = good;
  std::swap(bad.positions[0], bad.positions[1]);
  EXPECT_THAT(fault_of(bad), HasSubstr("position 0 is outside 2..4095"));
}

TEST(DeltaUpdateTest, RequiresZerosIfEmpty) {
  const std::vector<uint8_t> caps = {255};
  DeltaUpdate update = {.k = 2, .positions = {0, 0}, .signs = {0, 0}, .codes = {0}};
  EXPECT_EQ(ValidateDeltaUpdate(update, caps), absl::OkStatus());
  update.codes[0] = 1;
  EXPECT_THAT(ValidateDeltaUpdate(update, caps).message(), HasSubstr("not all 0"));
}

TEST(DeltaResultTest, IsCanonical) {
  const std::vector<BlockExtent> extents = {kCorner, BlockExtent{}};
  const std::vector<uint8_t> caps = {20, 20};
  const DeltaResult good = {.offsets = {0, 2, 2},
                            .positions = {1, 64},
                            .signs = {1, -1},
                            .levels = {3, 0},
                            .codes = {20, 0}};
  EXPECT_EQ(ValidateDeltaResult(good, extents, caps), absl::OkStatus());
  const auto fault_of = [&](const DeltaResult& result) {
    return std::string(ValidateDeltaResult(result, extents, caps).message());
  };
  DeltaResult bad = good;
  bad.levels = {3, 1};
  EXPECT_THAT(fault_of(bad), HasSubstr("its scale 20 is not its largest"));
  bad.codes = {0, 0};
  EXPECT_EQ(fault_of(bad), "") << "nothing is smaller than scale 0";
  bad = good;
  bad.codes = {21, 0};
  EXPECT_THAT(fault_of(bad), HasSubstr("scale code 21 is above the cap 20"));
  bad = good;
  bad.codes = {20, 1};
  EXPECT_THAT(fault_of(bad), HasSubstr("block 1: it is empty and has a scale"));
  bad = good;
  bad.positions = {1, 65};
  EXPECT_THAT(fault_of(bad), HasSubstr("position 65 is outside the tensor"));
  bad = good;
  bad.offsets = {0, 2, 1};
  EXPECT_THAT(fault_of(bad), HasSubstr("offsets do not span"));
}

// --- Combining, against the definition ------------------------------------------------------

using Wide = absl::int128;

// The definition of combining, position by position and worker by worker, without optimizations.
struct Oracle {
  std::vector<WeightedDelta> updates;
  std::vector<BlockExtent> extents;
  MeanRule rule;

  // r by position of a block.
  std::map<int, int64_t> Means(int64_t block) const {
    std::map<int, std::pair<Wide, Wide>> sums;
    for (const auto& [update, weight] : updates) {
      for (int64_t i = block * update->k; i < (block + 1) * update->k; ++i) {
        const int position = update->positions[i];
        if (update->signs[i] == 0 || !extents[block].Contains(position)) continue;
        sums[position].first += Wide{weight} * update->signs[i] * ScaleOf(update->codes[block]);
        sums[position].second += weight;
      }
    }
    std::map<int, int64_t> means;
    for (const auto& [position, sum] : sums) {
      Wide d = rule.divisor == Divisor::kAll ? Wide{rule.weights} : sum.second;
      if (rule.divisor == Divisor::kSenders && d < rule.least_senders) d = rule.least_senders;
      const Wide s = sum.first < 0 ? -sum.first : sum.first;
      const auto r = static_cast<int64_t>((2 * s + d) / (2 * d));
      if (r != 0) means[position] = sum.first < 0 ? -r : r;
    }
    return means;
  }
};

// Workers of different scales who choose a few positions of each block, so that many meet.
std::vector<DeltaUpdate> RandomUpdates(int workers, int k, absl::Span<const BlockExtent> extents) {
  std::vector<DeltaUpdate> updates;
  uint64_t draws = 0;
  const auto draw = [&](uint64_t below) { return SplitMix64(17, draws++) % below; };
  const auto nth_inside = [](const BlockExtent& extent, uint64_t n) {
    return static_cast<int>(n) / extent.cols * 64 + static_cast<int>(n) % extent.cols;
  };
  for (int w = 0; w < workers; ++w) {
    DeltaUpdate update{.k = k, .positions = {}, .signs = {}, .codes = {}};
    for (const BlockExtent& extent : extents) {
      const bool empty = draw(8) == 0;
      std::set<int> chosen;
      const int inside = std::min(k, extent.Elements());
      while (static_cast<int>(chosen.size()) < inside) {
        // Among few, so that workers meet.
        const int position = nth_inside(extent, draw(std::min(2 * k + 8, extent.Elements())));
        chosen.insert(position);
      }
      for (int outside = 0; static_cast<int>(chosen.size()) < k; ++outside) {
        if (!extent.Contains(outside)) chosen.insert(outside);
      }
      for (const int position : chosen) {
        update.positions.push_back(empty ? uint16_t{0} : static_cast<uint16_t>(position));
        const bool negative = extent.Contains(position) && draw(2) == 0;
        update.signs.push_back(empty ? int8_t{0} : negative ? int8_t{-1} : int8_t{1});
      }
      update.codes.push_back(empty ? uint8_t{0} : static_cast<uint8_t>(90 + draw(20)));
    }
    updates.push_back(std::move(update));
  }
  return updates;
}

std::vector<WeightedDelta> Weighted(const std::vector<DeltaUpdate>& updates,
                                    absl::Span<const int> weights) {
  std::vector<WeightedDelta> weighted;
  for (size_t i = 0; i < updates.size(); ++i) weighted.push_back({&updates[i], weights[i]});
  return weighted;
}

struct Case {
  std::string name;
  int k;
  Divisor divisor;
  int floor_256;
};

class CombineDeltasTest : public ::testing::TestWithParam<Case> {
 protected:
  const std::vector<BlockExtent> extents_ = {
      {}, {.rows = 64, .cols = 9, .last_cols = 9}, {.rows = 3, .cols = 64, .last_cols = 11}, {}};
};

TEST_P(CombineDeltasTest, MeansAreThoseOfTheDefinition) {
  const std::vector<DeltaUpdate> updates = RandomUpdates(4, GetParam().k, extents_);
  const std::vector<uint8_t> caps(extents_.size(), 255);
  for (const DeltaUpdate& update : updates)
    ASSERT_EQ(ValidateDeltaUpdate(update, caps), absl::OkStatus());
  const Oracle oracle = {.updates = Weighted(updates, {1, 2, 1, 3}),
                         .extents = extents_,
                         .rule = {.divisor = GetParam().divisor,
                                  .weights = 7,
                                  .least_senders = LeastSenders(7, GetParam().floor_256)}};
  const DeltaMeans means = CombineDeltas(oracle.updates, extents_, oracle.rule);
  ASSERT_EQ(means.blocks(), 4);
  for (int64_t block = 0; block < means.blocks(); ++block) {
    std::map<int, int64_t> found;
    for (uint32_t i = means.offsets[block]; i < means.offsets[block + 1]; ++i)
      found[means.positions[i]] = means.values[i];
    EXPECT_EQ(found, oracle.Means(block)) << "block " << block;
  }
  std::vector<WeightedDelta> reversed(oracle.updates.rbegin(), oracle.updates.rend());
  EXPECT_EQ(CombineDeltas(reversed, extents_, oracle.rule), means);
}

TEST_P(CombineDeltasTest, GivesValidResultNearMeans) {
  const std::vector<DeltaUpdate> updates = RandomUpdates(4, GetParam().k, extents_);
  const MeanRule rule = {.divisor = GetParam().divisor,
                         .weights = 7,
                         .least_senders = LeastSenders(7, GetParam().floor_256)};
  const DeltaMeans means = CombineDeltas(Weighted(updates, {1, 2, 1, 3}), extents_, rule);
  const DeltaResult result = RoundToLevels(means);
  const std::vector<uint8_t> caps(extents_.size(), 109);
  EXPECT_EQ(ValidateDeltaResult(result, extents_, caps), absl::OkStatus())
      << "a mean is never above the largest scale that was sent";
  for (int64_t block = 0; block < result.blocks(); ++block) {
    uint32_t i = means.offsets[block];
    for (uint32_t j = result.offsets[block]; j < result.offsets[block + 1]; ++j, ++i) {
      // What is between was dropped: less than a thirteenth of the largest.
      for (; means.positions[i] != result.positions[j]; ++i)
        EXPECT_LT(13 * std::abs(means.values[i]), ScaleOf(result.codes[block]));
      const auto meant = static_cast<double>(result.signs[j] *
                                             LevelMagnitude(result.codes[block], result.levels[j]));
      EXPECT_NEAR(meant / static_cast<double>(means.values[i]), 1, 0.19);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CombineDeltasTest,
                         ::testing::Values(Case{"one", 1, Divisor::kSenders, 0},
                                           Case{"eight", 8, Divisor::kSenders, 0},
                                           Case{"many", 32, Divisor::kSenders, 0},
                                           Case{"floor", 32, Divisor::kSenders, 128},
                                           Case{"all", 32, Divisor::kAll, 0},
                                           Case{"eight_all", 8, Divisor::kAll, 0}),
                         [](const auto& one) { return one.param.name; });

DeltaUpdate OneEntry(int position, int sign, int code) {
  return {.k = 1,
          .positions = {static_cast<uint16_t>(position)},
          .signs = {static_cast<int8_t>(sign)},
          .codes = {static_cast<uint8_t>(code)}};
}

TEST(CombineDeltasTest, DropsCancelledAndOutside) {
  const DeltaUpdate plus = OneEntry(7, 1, 50), minus = OneEntry(7, -1, 50);
  const std::vector<BlockExtent> whole(1), narrow = {{.rows = 64, .cols = 7, .last_cols = 7}};
  const MeanRule rule = {.divisor = Divisor::kSenders, .weights = 2, .least_senders = 0};
  const std::vector<WeightedDelta> opposed = {{&plus, 1}, {&minus, 1}};
  EXPECT_EQ(CombineDeltas(opposed, whole, rule).offsets, std::vector<uint32_t>({0, 0}));
  const std::vector<WeightedDelta> agreed = {{&plus, 1}, {&plus, 1}};
  EXPECT_EQ(CombineDeltas(agreed, whole, rule).values, std::vector<int64_t>({ScaleOf(50)}));
  EXPECT_EQ(CombineDeltas(agreed, narrow, rule).offsets, std::vector<uint32_t>({0, 0}));
}

TEST(CombineDeltasTest, DividesByFloorForLoneSender) {
  const DeltaUpdate lone = OneEntry(0, -1, 80), other = OneEntry(1, 1, 80);
  const std::vector<BlockExtent> whole(1);
  const std::vector<WeightedDelta> updates = {{&lone, 1}, {&other, 3}};
  const auto values = [&](int64_t floor) {
    return CombineDeltas(updates, whole,
                         {.divisor = Divisor::kSenders, .weights = 4, .least_senders = floor})
        .values;
  };
  const int64_t scale = ScaleOf(80);
  EXPECT_THAT(values(0), ElementsAre(-scale, scale));
  EXPECT_THAT(values(2), ElementsAre(-scale / 2, scale));
  EXPECT_EQ(LeastSenders(8, 64), 2);
  EXPECT_EQ(LeastSenders(9, 64), 3);
  EXPECT_EQ(LeastSenders(9, 256), 9);
  EXPECT_EQ(LeastSenders(9, 0), 0);
}

TEST(CombineDeltasTest, SumsLargestWithoutOverflow) {
  const DeltaUpdate largest = OneEntry(0, -1, 255);
  const std::vector<BlockExtent> whole(1);
  const std::vector<WeightedDelta> updates = {{&largest, static_cast<int>(kMaxDeltaWeights)}};
  const MeanRule rule = {
      .divisor = Divisor::kSenders, .weights = kMaxDeltaWeights, .least_senders = 0};
  EXPECT_THAT(CombineDeltas(updates, whole, rule).values, ElementsAre(-kMaxScale));
}

TEST(CombineDeltasTest, MeansAreRoundedToNearestHalvesAwayFromZero) {
  const MeanRounding rounding(3);
  EXPECT_EQ(rounding.Mean(5, 2), 3);
  EXPECT_EQ(rounding.Mean(-5, 2), -3);
  EXPECT_EQ(rounding.Mean(4, 3), 1);
  EXPECT_EQ(rounding.Mean(-1, 3), 0);
}

TEST(CombineDeltasTest, MeansByReciprocalsAreThoseOfADivision) {
  const MeanRounding rounding(kMaxDeltaWeights);
  uint64_t random = 1;
  for (const int64_t divisor : {1, 2, 3, 5, 7, 8, 255, 256, 4095, 4096, 4097, 1 << 19}) {
    std::vector<int64_t> sums = {0, 1, divisor - 1, divisor, (int64_t{1} << 62) - 1};
    for (int i = 0; i < 2000; ++i) {
      random = SplitMix64(random, 1);
      const int64_t sum = static_cast<int64_t>(random >> 2) >> (random % 62);
      sums.insert(sums.end(),
                  {sum, sum / divisor * divisor, sum / divisor * divisor + divisor / 2});
    }
    for (const int64_t sum : sums) {
      const absl::int128 twice = 2 * absl::int128(sum) + divisor;
      const auto mean = static_cast<int64_t>(twice / (2 * divisor));
      ASSERT_EQ(rounding.Mean(sum, divisor), mean) << sum << " / " << divisor;
      ASSERT_EQ(rounding.Mean(-sum, divisor), -mean) << sum << " / " << divisor;
    }
  }
}

TEST(KeepLargestTest, AmongEqualsTheSmallerTieStays) {
  DeltaMeans means = {
      .offsets = {0, 4, 6}, .positions = {3, 9, 40, 4095, 1, 2}, .values = {-7, 7, 8, 7, 5, 1}};
  const DeltaMeans kept = KeepLargest(means, 2, 11, RoundId(5), 100);
  ASSERT_EQ(kept.offsets, std::vector<uint32_t>({0, 2, 4}));
  const auto tie = [](uint64_t position) {
    return SplitMix64(11, (uint64_t{5} << 38) + (uint64_t{100} << 12) + position);
  };
  const auto first = std::min({3, 9, 4095}, [&](int a, int b) { return tie(a) < tie(b); });
  std::vector<int> expected = {40, first};
  std::ranges::sort(expected);
  EXPECT_THAT(std::vector<int>(kept.positions.begin(), kept.positions.begin() + 2),
              ::testing::ElementsAreArray(expected));
  EXPECT_THAT(std::vector<int>(kept.positions.begin() + 2, kept.positions.end()),
              ElementsAre(1, 2));
  EXPECT_EQ(KeepLargest(means, 4, 11, RoundId(5), 100), means);
}

// --- Caps -----------------------------------------------------------------------------------

TEST(DeltaCapTest, TakesLargestCodeOverSegments) {
  const Layout layout = *Layout::Create(
      *Manifest::Create({{.name = "a", .shape = {64, 192}}, {.name = "b", .shape = {3}}}), 2);
  std::vector<std::optional<uint8_t>> largest;
  const DeltaUpdate first = {.k = 1, .positions = {0, 5}, .signs = {0, 1}, .codes = {0, 40}};
  AddLargestCodes(layout, SegmentId(0), first, &largest);
  EXPECT_THAT(largest, ElementsAre(40, std::nullopt));
  const DeltaUpdate second = {.k = 1, .positions = {3, 1}, .signs = {-1, 1}, .codes = {39, 0}};
  AddLargestCodes(layout, SegmentId(1), second, &largest);
  EXPECT_THAT(largest, ElementsAre(40, 0)) << "scale 0 is a scale";
}

TEST(DeltaCapTest, TakesLowerMedian) {
  for (const std::optional<uint8_t> before :
       {std::optional<uint8_t>(), std::optional<uint8_t>(7)}) {
    EXPECT_EQ(MedianOfLargest({200, 9, 30}, before), 30);
    EXPECT_EQ(MedianOfLargest({200, 9, 30, 31}, before), 30);
  }
}

TEST(DeltaCapTest, WithoutAMedianBeforeFewerThanThreeHaveNone) {
  EXPECT_EQ(MedianOfLargest({}, std::nullopt), std::nullopt);
  EXPECT_EQ(MedianOfLargest({9, 200}, std::nullopt), std::nullopt);
}

TEST(DeltaCapTest, ZeroOrOneCodeKeepsTheMedianBefore) {
  EXPECT_EQ(MedianOfLargest({}, 30), 30);
  for (const uint8_t code : {uint8_t{0}, uint8_t{30}, uint8_t{255}})
    EXPECT_EQ(MedianOfLargest({code}, 30), 30);
}

TEST(DeltaCapTest, OfTwoCodesNeitherAloneMovesTheMedianBefore) {
  EXPECT_EQ(MedianOfLargest({9, 255}, 30), 30);
  EXPECT_EQ(MedianOfLargest({30, 255}, 30), 30);
  EXPECT_EQ(MedianOfLargest({255, 32}, 30), 32) << "both grew";
  EXPECT_EQ(MedianOfLargest({9, 20}, 30), 20) << "both shrank";
}

TEST(DeltaCapTest, MediansOfARecordAreCompletedTensorByTensor) {
  const std::vector<LargestCodes> workers = {{5, 40, {}, {}}, {6, 41, 9}, {7}};
  EXPECT_THAT(ScaleMedians(workers, {}, 4), ElementsAre(1 + 6, 0, 0, 0));
  EXPECT_THAT(ScaleMedians(workers, {1 + 50, 1 + 30, 1 + 30, 0}, 4),
              ElementsAre(1 + 6, 1 + 40, 1 + 30, 0));
}

TEST(DeltaCapTest, AddsTwoCodesWithinBounds) {
  const std::vector<float> rates = {0.001f, 0.003f};
  const int floor = ScaleCodeOf(0.004), ceiling = ScaleCodeOf(16 * 0.004);
  EXPECT_EQ(ceiling, floor + 32) << "four octaves";
  EXPECT_EQ(DeltaCap(rates, std::nullopt), ceiling);
  EXPECT_EQ(DeltaCap(rates, static_cast<uint8_t>(floor + 10)), floor + 12);
  EXPECT_EQ(DeltaCap(rates, uint8_t{0}), floor);
  EXPECT_EQ(DeltaCap(rates, uint8_t{250}), ceiling);
  const std::vector<float> huge = {1e30f, 1e30f};
  EXPECT_EQ(DeltaCap(huge, uint8_t{255}), 255);
  EXPECT_EQ(DeltaCap({}, uint8_t{0}), 0);
}

}  // namespace
}  // namespace distro
