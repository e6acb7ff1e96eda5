#include "server/round/log_rate.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::Seconds;

TEST(LogRateTest, IsMeanBytesOverMeanDuration) {
  LogRate rate;
  EXPECT_EQ(rate.BytesPerSecond(), 0u);
  rate.Add(1000, Seconds(1));
  rate.Add(5000, Seconds(2));
  EXPECT_EQ(rate.BytesPerSecond(), 2000u);
}

TEST(LogRateTest, ForgetsOldRounds) {
  LogRate rate;
  for (size_t i = 0; i < kLogRateRounds; ++i) rate.Add(1'000'000, Seconds(1));
  for (size_t i = 0; i < kLogRateRounds; ++i) rate.Add(100, Seconds(1));
  EXPECT_EQ(rate.BytesPerSecond(), 100u);
}

TEST(LogRateTest, OnlyALinkThatGainsOnTheLogCanFollow) {
  LogRate rate;
  EXPECT_TRUE(rate.CanFollow(1));  // nothing is known of the log
  rate.Add(1000, Seconds(1));
  EXPECT_TRUE(rate.CanFollow(0));  // nothing is known of the link
  EXPECT_TRUE(rate.CanFollow(1100));
  EXPECT_FALSE(rate.CanFollow(1099));
  EXPECT_FALSE(rate.CanFollow(1000));
}

TEST(LogRateTest, ARoundWithoutDurationIsNoRate) {
  LogRate rate;
  rate.Add(1000, absl::ZeroDuration());
  rate.Add(1000, -Seconds(1));
  EXPECT_EQ(rate.BytesPerSecond(), 0u);
}

}  // namespace
}  // namespace distro::server
