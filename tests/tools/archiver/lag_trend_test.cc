#include "tools/archiver/lag_trend.h"

#include "gtest/gtest.h"

namespace distro::tools {
namespace {

// A reading every 2 s for `seconds`; the last judgement.
template <typename Lag>
LagJudgement After(int seconds, Lag lag) {
  LagTrend trend;
  LagJudgement last;
  for (int t = 0; t <= seconds; t += 2) last = trend.Add(absl::Seconds(t), lag(t));
  return last;
}

TEST(LagTrendTest, IgnoresFewRounds) {
  EXPECT_EQ(After(200, [](int t) { return t % 4 == 0 ? 2 : 0; }).pace, Pace::kKeepsUp);
}

TEST(LagTrendTest, CatchesUpAsLagShrinks) {
  EXPECT_EQ(After(200, [](int t) { return 1000 - t; }).pace, Pace::kCatchesUp);
}

TEST(LagTrendTest, CatchesUpAtConstantLag) {
  EXPECT_EQ(After(200, [](int) { return 50; }).pace, Pace::kCatchesUp);
}

TEST(LagTrendTest, FallsBehindAsLagGrows) {
  const LagJudgement judgement = After(120, [](int t) { return t; });
  EXPECT_EQ(judgement.pace, Pace::kFallsBehind);
  EXPECT_EQ(judgement.reason, "120 rounds behind; 60 rounds 1m ago");
}

// A snapshot that is saved holds the replay up for a while.
TEST(LagTrendTest, CatchesUpAfterShortStall) {
  EXPECT_EQ(After(40, [](int t) { return t; }).pace, Pace::kCatchesUp);
}

TEST(LagTrendTest, RecoversOnceTheLagShrinks) {
  EXPECT_EQ(After(240, [](int t) { return t < 120 ? 10 * t : 2400 - 10 * t; }).pace,
            Pace::kKeepsUp);
}

}  // namespace
}  // namespace distro::tools
