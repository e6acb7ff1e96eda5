#include "common/method/base/pair_counts.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace distro {
namespace {

constexpr BlockExtent kWhole;

// One worker's signs of a block: position -> sign.
class Sent {
 public:
  Sent(const std::map<uint16_t, int8_t>& signs) {
    for (const auto& [position, sign] : signs) {
      positions_.push_back(position);
      signs_.push_back(sign);
    }
  }
  operator SentSigns() const { return {.positions = positions_, .signs = signs_}; }

 private:
  std::vector<uint16_t> positions_;
  std::vector<int8_t> signs_;
};

TEST(PairCountsTest, CountsThePositionsThatBothSent) {
  const Sent a({{1, 1}, {2, 1}, {3, -1}, {4, 1}}), b({{1, 1}, {2, -1}, {3, -1}, {9, 1}}),
      c({{1, 1}, {3, 1}, {8, 1}, {9, 1}});
  PairCounts pairs(3);
  pairs.AddBlock(kWhole, {a, b, c});
  EXPECT_EQ(pairs.Of(0, 1), (AgreementCounts{.agree = 2, .disagree = 1}));
  EXPECT_EQ(pairs.Of(0, 2), (AgreementCounts{.agree = 1, .disagree = 1}));
  EXPECT_EQ(pairs.Of(1, 2), (AgreementCounts{.agree = 2, .disagree = 1}));
  EXPECT_EQ(pairs.Of(2, 1), pairs.Of(1, 2));
}

TEST(PairCountsTest, BlocksAddUpAndDoNotMix) {
  const Sent a({{1, 1}, {4095, 1}}), b({{2, 1}, {4095, 1}}), none({});
  PairCounts pairs(2);
  pairs.AddBlock(kWhole, {a, b});
  pairs.AddBlock(kWhole, {b, a});
  pairs.AddBlock(kWhole, {a, none});
  pairs.AddBlock(kWhole, {none, b});
  EXPECT_EQ(pairs.Of(0, 1), (AgreementCounts{.agree = 2, .disagree = 0}));
}

TEST(PairCountsTest, IgnoresBlockWithoutVotes) {
  const std::vector<uint16_t> positions = {0, 0, 0, 0};
  const std::vector<int8_t> zeros = {0, 0, 0, 0};
  const SentSigns empty = {.positions = positions, .signs = zeros};
  const Sent one(std::map<uint16_t, int8_t>{{0, 1}});
  PairCounts pairs(2);
  pairs.AddBlock(kWhole, {empty, one});
  pairs.AddBlock(kWhole, {empty, empty});
  EXPECT_EQ(pairs.Of(0, 1), AgreementCounts{});
}

TEST(PairCountsTest, PositionsOutsideTheTensorDoNotCount) {
  const Sent a({{0, 1}, {2, 1}, {64, 1}});
  PairCounts pairs(2);
  pairs.AddBlock({.rows = 1, .cols = 2, .last_cols = 2}, {a, a});
  EXPECT_EQ(pairs.Of(0, 1).agree, 1u);
}

}  // namespace
}  // namespace distro
