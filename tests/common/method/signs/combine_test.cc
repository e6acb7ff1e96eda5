#include "common/method/signs/combine.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using ::distro::testing::Combine;
using ::distro::testing::WeightedUpdate;

TEST(CombineTest, SumsSignsByWeightAndDropsZeros) {
  const SignUpdate a = {.k = 2, .positions = {3, 70, 0, 4095}, .signs = {1, -1, 1, 1}};
  const SignUpdate b = {.k = 2, .positions = {3, 71, 0, 4095}, .signs = {-1, -1, 1, -1}};
  const std::vector<WeightedUpdate> updates = {{&a, 1}, {&b, 1}, {&b, 2}};
  const Votes votes = Combine(updates);
  EXPECT_EQ(votes.offsets, std::vector<uint32_t>({0, 3, 5}));
  EXPECT_EQ(votes.positions, std::vector<uint16_t>({3, 70, 71, 0, 4095}));
  EXPECT_EQ(votes.values, std::vector<int16_t>({-2, -1, -3, 4, -2}));
  const std::vector<WeightedUpdate> opposed = {{&a, 1}, {&b, 1}};
  EXPECT_EQ(Combine(opposed).positions, std::vector<uint16_t>({70, 71, 0}));
}

TEST(CombineTest, CastsNoVoteWithoutSigns) {
  const SignUpdate silent = {.k = 2, .positions = {0, 0}, .signs = {0, 0}};
  const std::vector<WeightedUpdate> updates = {{&silent, 1}};
  EXPECT_EQ(Combine(updates).offsets, std::vector<uint32_t>({0, 0}));
}

TEST(CombineTest, EmptiesAccumulatorAfterBlock) {
  VoteAccumulator accumulator;
  const uint16_t position = 9;
  const int8_t sign = -1;
  Votes votes;
  accumulator.Add({&position, 1}, {&sign, 1}, 5);
  accumulator.EmitBlock(&votes);
  accumulator.EmitBlock(&votes);
  EXPECT_EQ(votes.offsets, std::vector<uint32_t>({0, 1, 1}));
  EXPECT_EQ(votes.values, std::vector<int16_t>({-5}));
}

TEST(VotesTest, PartsStandOneAfterTheOther) {
  const Votes first = {.offsets = {0, 1, 3}, .positions = {7, 0, 9}, .values = {1, -2, 3}};
  const Votes second = {.offsets = {0, 0, 1}, .positions = {4095}, .values = {-1}};
  const Votes both = {
      .offsets = {0, 1, 3, 3, 4}, .positions = {7, 0, 9, 4095}, .values = {1, -2, 3, -1}};
  EXPECT_TRUE(Concatenate({first, Votes{}, second}) == both);
  EXPECT_TRUE(Concatenate({first}) == first);
  EXPECT_TRUE(Concatenate({}) == Votes{});
}

TEST(KeepTopTest, GoldenBlocksKeepTheSameVotes) {
  const auto golden = testing::LoadGolden("top");
  const auto offsets = golden.at("vote_offset").As<uint32_t>();
  const auto positions = golden.at("vote_index").As<uint16_t>();
  const auto values = golden.at("vote_value").As<int16_t>();
  const auto kept_offsets = golden.at("kept_offset").As<uint32_t>();
  const auto kept = golden.at("kept_index").As<uint16_t>();
  const auto keep = golden.at("keep").As<uint16_t>();
  ASSERT_GT(keep.size(), 0u);
  for (size_t i = 0; i < keep.size(); ++i) {
    const uint32_t begin = offsets[i], end = offsets[i + 1];
    const Votes votes = {.offsets = {0, end - begin},
                         .positions = {positions.begin() + begin, positions.begin() + end},
                         .values = {values.begin() + begin, values.begin() + end}};
    const Votes top = KeepTop(votes, keep[i], golden.at("run_seed").As<uint64_t>()[i],
                              RoundId(golden.at("round").As<uint32_t>()[i]),
                              golden.at("block").As<uint32_t>()[i]);
    EXPECT_EQ(absl::MakeConstSpan(top.positions),
              kept.subspan(kept_offsets[i], kept_offsets[i + 1] - kept_offsets[i]))
        << "block " << i;
    EXPECT_EQ(ValidateVotes(top, 1), absl::OkStatus());
  }
}

// What top.h says, by sorting.
std::vector<uint16_t> TopBySorting(const Votes& block, int keep, uint64_t seed, uint64_t base) {
  std::vector<std::pair<std::pair<int, uint64_t>, uint16_t>> order;
  for (size_t i = 0; i < block.values.size(); ++i) {
    const uint16_t position = block.positions[i];
    order.push_back({{-std::abs(block.values[i]), SplitMix64(seed, base + position)}, position});
  }
  std::sort(order.begin(), order.end());
  std::vector<uint16_t> kept;
  for (int i = 0; i < keep; ++i) kept.push_back(order[i].second);
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(KeepTopTest, EqualsSorting) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const int largest = seed % 5 == 0 ? 32767 : 1 + static_cast<int>(seed % 7);
    const uint16_t entries = seed % 11 == 0 ? 4096 : 2 + SplitMix64(seed, 0) % 300;
    Votes block = {.offsets = {0, entries}, .positions = {}, .values = {}};
    for (uint16_t i = 0; i < entries; ++i) {
      const uint64_t word = SplitMix64(seed, i + 1);
      block.positions.push_back(i);
      block.values.push_back(static_cast<int16_t>((1 + static_cast<int>((word >> 1) % largest)) *
                                                  (word & 1 ? 1 : -1)));
    }
    for (const int keep : {1, entries / 3 + 1, entries - 1}) {
      EXPECT_EQ(KeepTop(block, keep, seed, RoundId(5), 9).positions,
                TopBySorting(block, keep, seed, (uint64_t{5} << 38) + (9 << 12)))
          << "seed " << seed << ", keep " << keep;
    }
  }
}

TEST(KeepTopTest, BlocksAreNumberedFromTheFirst) {
  const Votes block = {.offsets = {0, 4}, .positions = {1, 2, 3, 4}, .values = {1, -1, 1, -1}};
  Votes both = block;
  both.offsets.push_back(8);
  both.positions.insert(both.positions.end(), block.positions.begin(), block.positions.end());
  both.values.insert(both.values.end(), block.values.begin(), block.values.end());
  const Votes top = KeepTop(both, 2, 17, RoundId(3), 100);
  const Votes second = KeepTop(block, 2, 17, RoundId(3), 101);
  EXPECT_EQ(std::vector<uint16_t>(top.positions.begin() + 2, top.positions.end()),
            second.positions);
}

TEST(KeepTopTest, KeepingAllOrNothing) {
  const Votes votes = {.offsets = {0, 2}, .positions = {1, 2}, .values = {1, -1}};
  EXPECT_TRUE(KeepTop(votes, 2, 1, RoundId(0), 0) == votes);
  EXPECT_TRUE(KeepTop(votes, 0, 1, RoundId(0), 0).positions.empty());
}

TEST(ValidateVotesTest, ChecksRules) {
  const Votes good = {.offsets = {0, 2, 3}, .positions = {1, 4095, 0}, .values = {32766, -1, 5}};
  EXPECT_EQ(ValidateVotes(good, 2), absl::OkStatus());
  const auto expect_bad = [&](auto change, const std::string& message) {
    Votes bad = good;
    change(&bad);
    EXPECT_EQ(ValidateVotes(bad, 2), absl::InvalidArgumentError("votes: " + message));
  };
  expect_bad([](Votes* v) { v->offsets.pop_back(); }, "1 blocks, expected 2");
  expect_bad([](Votes* v) { v->offsets.clear(); }, "no offsets");
  expect_bad([](Votes* v) { v->offsets[1] = 4; }, "block 1: offsets descend");
  expect_bad([](Votes* v) { v->values.pop_back(); },
             "offsets from 0 to 3 do not span 3 positions and 2 values");
  expect_bad([](Votes* v) { v->positions[1] = 1; }, "block 0: position 1 is outside 2..4095");
  expect_bad([](Votes* v) { v->positions[1] = 4096; }, "block 0: position 4096 is outside 2..4095");
  expect_bad([](Votes* v) { v->values[2] = 0; }, "block 1: position 0 has value 0");
  expect_bad([](Votes* v) { v->values[1] = 2; }, "block 0: sum of |V| is 32768, at most 32767");
}

}  // namespace
}  // namespace distro
