// Dense updates combine to the same results as others.
#include "common/method/deltas/dense_combine.h"

#include <algorithm>
#include <string>
#include <vector>

#include "bench/wire/random_deltas.h"
#include "common/method/deltas/scale.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

constexpr int64_t kBlocks = 4;
constexpr BlockExtent kExtents[kBlocks] = {
    {}, {.rows = 50, .cols = 60, .last_cols = 7}, {.rows = 1, .cols = 3, .last_cols = 3}, {}};

// The updates of workers with these weights. Every third worker sends nothing of block 3.
std::vector<DeltaUpdate> Updates(size_t workers, uint64_t seed) {
  std::vector<DeltaUpdate> updates;
  for (size_t w = 0; w < workers; ++w) {
    updates.push_back(bench::RandomDelta(kBlockElements, kBlocks, seed + w));
    if (w % 3 != 2) continue;
    DeltaUpdate& update = updates.back();
    std::fill_n(update.positions.begin() + 3 * kBlockElements, kBlockElements, uint16_t{0});
    std::fill_n(update.signs.begin() + 3 * kBlockElements, kBlockElements, int8_t{0});
    update.codes[3] = 0;
  }
  return updates;
}

struct Combination {
  DeltaResult result;
  size_t entries = 0;
  bool operator==(const Combination&) const = default;
};

Combination Combined(const std::vector<DeltaUpdate>& updates, const std::vector<int>& weights,
                     const MeanRule& rule) {
  std::vector<std::string> bodies(updates.size());
  std::vector<DenseUpdate> opened;
  for (size_t w = 0; w < updates.size(); ++w) {
    AppendDenseUpdate(updates[w], &bodies[w]);
    opened.push_back(*DenseUpdate::Open(bodies[w], kBlocks));
  }
  DenseAccumulator accumulator(rule);
  DenseResult result = {.symbols = std::vector<uint8_t>(kBlocks * kBlockElements, 99),
                        .codes = std::vector<uint8_t>(kBlocks)};
  size_t entries = 0;
  for (uint32_t block = 0; block < kBlocks; ++block) {
    std::vector<DenseSent> sent;
    for (size_t w = 0; w < updates.size(); ++w) {
      if (opened[w].empty(block)) continue;
      sent.push_back({.signs = opened[w].SignsOf(block),
                      .value = weights[w] * ScaleOf(opened[w].code(block)),
                      .weight = weights[w]});
    }
    const DenseBlock combined =
        accumulator.Combine(kExtents[block], sent, result.symbols.data() + block * kBlockElements);
    result.codes[block] = combined.code;
    entries += combined.entries;
  }
  return {.result = SparseOf(result), .entries = entries};
}

Combination Expected(const std::vector<DeltaUpdate>& updates, const std::vector<int>& weights,
                     const MeanRule& rule) {
  std::vector<WeightedDelta> weighted;
  for (size_t w = 0; w < updates.size(); ++w)
    weighted.push_back({.update = &updates[w], .weight = weights[w]});
  const DeltaMeans means = CombineDeltas(weighted, kExtents, rule);
  return {.result = RoundToLevels(means), .entries = means.values.size()};
}

TEST(DenseCombineTest, GivesTheResultOfOtherUpdates) {
  for (const size_t workers : {1, 2, 3, 7, 8, 9, 16, 17, 33}) {
    const std::vector<DeltaUpdate> updates = Updates(workers, 100 * workers);
    std::vector<int> weights;
    int64_t sum = 0;
    for (size_t w = 0; w < workers; ++w) {
      weights.push_back(static_cast<int>(1 + w * w % 5));
      sum += weights.back();
    }
    for (const Divisor divisor : {Divisor::kSenders, Divisor::kAll}) {
      const MeanRule rule = {
          .divisor = divisor, .weights = sum, .least_senders = LeastSenders(sum, 200)};
      EXPECT_TRUE(Combined(updates, weights, rule) == Expected(updates, weights, rule)) << workers;
    }
  }
}

// A mean that is too small for a level is counted, and not sent.
TEST(DenseCombineTest, CountsMeansThatAreTooSmallToSend) {
  // An even number of large values may cancel, so that only the small one is left.
  for (const size_t workers : {3, 13}) {
    std::vector<DeltaUpdate> updates = Updates(workers, 5);
    for (size_t w = 0; w < workers; ++w) {
      for (int64_t block = 0; block < kBlocks; ++block) {
        if (!updates[w].empty(block)) updates[w].codes[block] = w == 0 ? 88 : 120;
      }
    }
    const std::vector<int> weights(workers, 1);
    const MeanRule rule = {.weights = static_cast<int64_t>(workers)};
    const Combination combined = Combined(updates, weights, rule);
    EXPECT_TRUE(combined == Expected(updates, weights, rule));
    EXPECT_GT(combined.entries, combined.result.positions.size());
  }
}

// Sums near 2^62, of both signs.
TEST(DenseCombineTest, LargestWeightsAndScalesDoNotOverflow) {
  for (const size_t workers : {2, 16}) {
    std::vector<DeltaUpdate> updates = Updates(workers, 7);
    const auto weight = static_cast<int>(kMaxDeltaWeights / static_cast<int64_t>(workers));
    const std::vector<int> weights(workers, weight);
    for (DeltaUpdate& update : updates) {
      for (int64_t block = 0; block < kBlocks; ++block) {
        if (!update.empty(block)) update.codes[block] = kScaleCodes - 1;
      }
    }
    const MeanRule rule = {.weights = kMaxDeltaWeights};
    EXPECT_TRUE(Combined(updates, weights, rule) == Expected(updates, weights, rule)) << workers;
  }
}

// Two workers with opposite signs: nothing is left, and the block's code is 0.
TEST(DenseCombineTest, SumsThatCancelHaveNoEntry) {
  std::vector<DeltaUpdate> updates = {bench::RandomDelta(kBlockElements, kBlocks, 1)};
  updates.push_back(updates[0]);
  for (int8_t& sign : updates[1].signs) sign = static_cast<int8_t>(-sign);
  const DeltaResult result = Combined(updates, {1, 1}, {.weights = 2}).result;
  EXPECT_TRUE(result.positions.empty());
  EXPECT_EQ(result.codes, std::vector<uint8_t>(kBlocks));
}

TEST(DenseCombineTest, BlockOfNobodyHasNoEntry) {
  const DeltaResult result = Combined({}, {}, {.weights = 0}).result;
  EXPECT_TRUE(result.positions.empty());
  EXPECT_EQ(result.codes, std::vector<uint8_t>(kBlocks));
}

}  // namespace
}  // namespace distro
