#include "common/method/deltas/sparse_combine.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/method/deltas/scale.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::ElementsAre;

using Entry = std::tuple<int, int, int>;  // position, sign, level

// What workers send of a block.
struct Block {
  std::vector<std::vector<uint16_t>> entries;
  std::vector<SparseSent> sent;

  void Send(std::vector<uint16_t> of_worker, int code, int weight) {
    entries.push_back(std::move(of_worker));
    sent.push_back({.entries = {}, .code = static_cast<uint8_t>(code), .weight = weight});
    for (size_t i = 0; i < sent.size(); ++i) sent[i].entries = entries[i];
  }
  int64_t weights() const {
    int64_t sum = 0;
    for (const SparseSent& of : sent) sum += of.weight;
    return sum;
  }
};

std::vector<Entry> EntriesOf(const DeltaBlock& block) {
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < block.count; ++i)
    entries.emplace_back(block.positions[i], block.signs[i], block.levels[i]);
  return entries;
}

// Compares accumulators that have made other blocks before with the definition by means.
class Compared {
 public:
  explicit Compared(const MeanRule& rule) : levels_(rule), means_(rule) {}

  void Expect(const BlockExtent& extent, const Block& block) {
    DeltaMeans means;
    for (const SparseSent& of : block.sent) means_.Add(extent, of);
    means_.EmitBlock(&means);
    RoundBlock(means, 0, expected_.get());
    EXPECT_EQ(levels_.Combine(extent, block.sent, found_.get()), means.values.size());
    EXPECT_EQ(found_->code, expected_->code);
    EXPECT_EQ(EntriesOf(*found_), EntriesOf(*expected_));
  }
  const DeltaBlock& found() const { return *found_; }

 private:
  SparseAccumulator levels_;
  DeltaAccumulator means_;
  const std::unique_ptr<DeltaBlock> expected_ = std::make_unique<DeltaBlock>();
  const std::unique_ptr<DeltaBlock> found_ = std::make_unique<DeltaBlock>();
};

constexpr uint16_t Negative(int position) {
  return static_cast<uint16_t>(position + kBlockElements);
}

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  int Below(int64_t end) {
    return static_cast<int>(SplitMix64(seed_, draws_++) % static_cast<uint64_t>(end));
  }

  // Entries among few positions, so that workers meet; with one sign in agreement.
  std::vector<uint16_t> Entries(int k, int among, bool agree) {
    std::vector<uint16_t> entries;
    for (int position = 0, left = k; left > 0; ++position) {
      if (Below(std::max(1, among - position)) >= left) continue;
      --left;
      const bool negative = !agree && Below(2) == 0;
      entries.push_back(negative ? Negative(position) : static_cast<uint16_t>(position));
    }
    return entries;
  }

 private:
  const uint64_t seed_;
  uint64_t draws_ = 0;
};

struct Case {
  std::string name;
  int workers, k, most_weight, code_spread;
  Divisor divisor = Divisor::kSenders;
  int floor_256 = 0;
};

class SparseAccumulatorTest : public ::testing::TestWithParam<Case> {};

// A mean is near the bound of a level in one of a thousand positions: there are some of these.
TEST_P(SparseAccumulatorTest, MakesTheBlockOfTheMeans) {
  const Case& of = GetParam();
  Random random(3);
  for (int round = 0; round < 4; ++round) {
    std::vector<int> weights;
    for (int i = 0; i < of.workers; ++i) weights.push_back(1 + random.Below(of.most_weight));
    int64_t sum = 0;
    for (const int weight : weights) sum += weight;
    Compared compared(
        {.divisor = of.divisor, .weights = sum, .least_senders = LeastSenders(sum, of.floor_256)});
    for (int i = 0; i < 256; ++i) {
      // Every code is the least of a block of a round.
      const int code = (i + 64 * round) % kScaleCodes;
      const BlockExtent extent =
          i % 7 == 0 ? BlockExtent{.rows = 9, .cols = 64, .last_cols = 5} : BlockExtent{};
      Block block;
      for (int w = 0; w < of.workers; ++w) {
        if (random.Below(9) == 0) continue;  // it sends nothing of the block
        const int more = random.Below(of.code_spread);
        block.Send(random.Entries(of.k, std::min(kBlockElements, 3 * of.k), w % 2 == 0),
                   std::min(code + more, kScaleCodes - 1), weights[w]);
      }
      compared.Expect(extent, block);
      ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round << ", block " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SparseAccumulatorTest,
    ::testing::Values(Case{"one", 1, 32, 1, 1}, Case{"one_of_all", 1, 4095, 1, 1},
                      Case{"three", 3, 128, 1, 4}, Case{"windows", 5, 128, 15, 8},
                      Case{"many", 40, 64, 1, 3}, Case{"many_windows", 40, 64, 15, 20},
                      Case{"all", 8, 128, 3, 8, Divisor::kAll},
                      Case{"floor", 8, 128, 3, 8, Divisor::kSenders, 128},
                      Case{"far_scales", 4, 128, 2, 256}, Case{"large_weights", 4, 64, 100000, 8},
                      Case{"large_weights_all", 4, 64, 100000, 8, Divisor::kAll}),
    [](const auto& one) { return one.param.name; });

TEST(SparseCombineTest, DropsCancelledAndOutside) {
  const BlockExtent narrow = {.rows = 64, .cols = 7, .last_cols = 7};
  Compared compared({.weights = 2});
  Block block;
  block.Send({5, 6, 7}, 100, 1);
  block.Send({5, Negative(6), 7}, 100, 1);
  compared.Expect(BlockExtent{}, block);
  EXPECT_THAT(EntriesOf(compared.found()), ElementsAre(Entry{5, 1, 0}, Entry{7, 1, 0}));
  compared.Expect(narrow, block);
  EXPECT_THAT(EntriesOf(compared.found()), ElementsAre(Entry{5, 1, 0}));
}

// The sum is a unit of the smallest scale, 2^8, and the divisor 1005.
TEST(SparseCombineTest, DropsMeanThatRoundsToZero) {
  Compared compared({.weights = 1005});
  Block block;
  block.Send({9, 10}, 1, 473);
  block.Send({Negative(9), 10}, 0, 532);
  compared.Expect(BlockExtent{}, block);
  EXPECT_THAT(EntriesOf(compared.found()), ElementsAre(Entry{10, 1, 0}));
}

TEST(SparseCombineTest, MakesEmptyBlockWithoutSenders) {
  Compared compared({.weights = 3});
  compared.Expect(BlockExtent{}, {});
  EXPECT_EQ(compared.found().count, 0u);
  EXPECT_EQ(compared.found().code, 0);
}

// Workers of 8, 9, ..., 15 and 16, 32, ..., 2^17 units, so that a position can have any sum from 16
// to 2^18.
class AnySum {
 public:
  static constexpr int kWorkers = 22;

  explicit AnySum(int code) : code_(code), of_workers_(kWorkers) {}
  // The next position has this sum.
  void Add(int64_t sum) {
    const uint16_t position = next_++;
    if (sum % 8 != 0) {
      of_workers_[sum % 8].push_back(position);
      sum -= 8 + sum % 8;
    }
    if (sum / 8 % 2 != 0) {
      of_workers_[0].push_back(position);
      sum -= 8;
    }
    for (int worker = 8; worker < kWorkers; ++worker) {
      if (sum >> (worker - 4) & 1) of_workers_[worker].push_back(position);
    }
  }
  Block Sent() const {
    Block block;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const int more = worker < 8 ? worker : 8 * (worker - 7);
      if (!of_workers_[worker].empty()) block.Send(of_workers_[worker], code_ + more, 1);
    }
    return block;
  }

 private:
  const int code_;
  uint16_t next_ = 0;
  std::vector<std::vector<uint16_t>> of_workers_;
};

TEST(SparseCombineTest, LevelsChangeWhereTheMeansDo) {
  constexpr int64_t kDivisor = AnySum::kWorkers;
  for (int least = 0; least < 144; least += 8) {
    for (int more = 0; more < 80; ++more) {
      const int code = least + more;
      const auto sum_of = [&](int64_t twice_mean) {  // the least with this mean, in units
        const int64_t unit = ScaleOf(least) / 8;
        return (kDivisor * twice_mean + 2 * unit - 1) / (2 * unit);
      };
      AnySum sums(least);
      sums.Add(sum_of(2 * ScaleOf(code)));
      for (int level = 0; level < kLevels; ++level) {
        const int64_t bound = sum_of(2 * LevelBounds(code).Least(level) - 1);
        for (const int64_t sum : {bound - 1, bound, bound + 1}) {
          if (sum > 15) sums.Add(sum);
        }
      }
      Compared compared({.divisor = Divisor::kAll, .weights = kDivisor});
      compared.Expect(BlockExtent{}, sums.Sent());
      EXPECT_EQ(compared.found().code, code);
      ASSERT_FALSE(::testing::Test::HasFailure()) << "code " << code << ", least " << least;
    }
  }
}

// The mean is above M(56) by less than a unit of 2^-44.
TEST(SparseCombineTest, CoversMeanSlightlyAboveScale) {
  Compared compared({.weights = 300});
  Block block;
  block.Send({0}, 56, 297);
  block.Send({Negative(0)}, 0, 1);
  block.Send({0}, 1, 1);
  block.Send({0}, 68, 1);
  compared.Expect(BlockExtent{}, block);
  EXPECT_EQ(compared.found().code, 57);
}

// Weights of 2047 and sums of 2^19 are the most that a word holds.
TEST(SparseCombineTest, CombinesBeyondTheLimitsOfWords) {
  for (const int weight : {1000, 1001, 6000}) {
    for (const int more : {0, 16, 32, 40, 64, 135}) {
      Block block;
      block.Send({1, 2, Negative(3)}, 100, 1);
      block.Send({2, Negative(3), Negative(4)}, 100 + more, weight);
      block.Send({3, Negative(4), 5}, 100 + more, 1046);
      Compared compared({.weights = block.weights()});
      compared.Expect(BlockExtent{}, block);
      ASSERT_FALSE(::testing::Test::HasFailure()) << weight << ", " << more;
    }
  }
}

TEST(SparseCombineTest, SumsLargestWithoutOverflow) {
  Compared compared({.weights = kMaxDeltaWeights});
  Block block;
  block.Send({Negative(0)}, kScaleCodes - 1, static_cast<int>(kMaxDeltaWeights));
  compared.Expect(BlockExtent{}, block);
  EXPECT_EQ(compared.found().code, kScaleCodes - 1);
  EXPECT_THAT(EntriesOf(compared.found()), ElementsAre(Entry{0, -1, 0}));
}

}  // namespace
}  // namespace distro
