#include "server/round/pace.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::InfiniteDuration;
using absl::Milliseconds;
using absl::Seconds;

TEST(UpdateTimesTest, CountsFromOpenAndOnceAWorkerAndRound) {
  UpdateTimes times;
  times.Open(RoundId(3), Seconds(10));
  const auto first = times.Arrived(RoundId(3), "a", Seconds(14));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->since_open, Seconds(4));
  EXPECT_FALSE(first->lateness.has_value());
  EXPECT_FALSE(times.Arrived(RoundId(3), "a", Seconds(15)).has_value());
  EXPECT_TRUE(times.Arrived(RoundId(3), "b", Seconds(15)).has_value());
}

TEST(UpdateTimesTest, TimesLateUpdate) {
  UpdateTimes times;
  times.Open(RoundId(3), Seconds(10));
  times.Close(Seconds(20));
  times.Open(RoundId(4), Seconds(21));
  const auto late = times.Arrived(RoundId(3), "a", Seconds(27));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->since_open, Seconds(17));
  EXPECT_EQ(late->lateness, Seconds(7));
  EXPECT_EQ(times.Arrived(RoundId(4), "a", Seconds(27))->since_open, Seconds(6));
}

TEST(UpdateTimesTest, RoundsThatAreTooOldOrUnknownAreNotTimed) {
  UpdateTimes times;
  for (uint64_t r = 0; r <= kTimedRounds; ++r) times.Open(RoundId(r), Seconds(r));
  EXPECT_FALSE(times.Arrived(RoundId(0), "a", Seconds(20)).has_value());
  EXPECT_TRUE(times.Arrived(RoundId(1), "a", Seconds(20)).has_value());
  EXPECT_FALSE(times.Arrived(RoundId(99), "a", Seconds(20)).has_value());
}

// Ten workers, of which the slowest two take `slow`.
void AddRound(AdaptiveDeadline* deadline, uint64_t round, absl::Duration fast,
              absl::Duration slow) {
  for (int i = 0; i < 10; ++i) deadline->Add(RoundId(round), i < 8 ? fast : slow);
}

TEST(AdaptiveDeadlineTest, IsTheLongestWhileNothingIsKnown) {
  EXPECT_EQ(AdaptiveDeadline(Seconds(5), Seconds(60)).Deadline(), Seconds(60));
}

TEST(AdaptiveDeadlineTest, IsOneAndAHalfTimesThe90thPercentile) {
  AdaptiveDeadline deadline(Milliseconds(1), Seconds(60));
  for (int i = 1; i <= 10; ++i) deadline.Add(RoundId(0), Seconds(11 - i));
  EXPECT_EQ(deadline.Deadline(), Seconds(13.5));  // the ninth of ten
  deadline.Add(RoundId(0), Seconds(11));
  EXPECT_EQ(deadline.Deadline(), Seconds(15));  // the tenth of eleven
}

TEST(AdaptiveDeadlineTest, TakesLoneTimeAsPercentile) {
  AdaptiveDeadline deadline(Milliseconds(1), Seconds(60));
  deadline.Add(RoundId(3), Seconds(4));
  EXPECT_EQ(deadline.Deadline(), Seconds(6));
}

TEST(AdaptiveDeadlineTest, StaysWithinItsBounds) {
  AdaptiveDeadline deadline(Seconds(5), Seconds(60));
  deadline.Add(RoundId(0), Seconds(1));
  EXPECT_EQ(deadline.Deadline(), Seconds(5));
  for (int i = 0; i < 100; ++i) deadline.Add(RoundId(1), Seconds(1000));
  EXPECT_EQ(deadline.Deadline(), Seconds(60));
}

TEST(AdaptiveDeadlineTest, IgnoresOneSlowWorkerOfTen) {
  AdaptiveDeadline deadline(Milliseconds(1), Seconds(60));
  for (uint64_t r = 0; r < 4; ++r) {
    for (int i = 0; i < 10; ++i) deadline.Add(RoundId(r), i < 9 ? Seconds(2) : Seconds(30));
  }
  EXPECT_EQ(deadline.Deadline(), Seconds(3));
}

TEST(AdaptiveDeadlineTest, LateTimesGiveMoreTime) {
  AdaptiveDeadline deadline(Milliseconds(1), Seconds(60));
  for (uint64_t r = 0; r < 4; ++r) AddRound(&deadline, r, Seconds(2), Seconds(2));
  EXPECT_EQ(deadline.Deadline(), Seconds(3));
  for (uint64_t r = 4; r < 9; ++r) AddRound(&deadline, r, Seconds(2), Seconds(8));
  EXPECT_EQ(deadline.Deadline(), Seconds(12));
}

TEST(AdaptiveDeadlineTest, ForgetsRoundsThatAreLongOver) {
  AdaptiveDeadline deadline(Milliseconds(1), Seconds(60));
  deadline.Add(RoundId(0), Seconds(40));
  for (uint64_t r = 1; r < kDeadlineRounds; ++r) deadline.Add(RoundId(r), Seconds(40));
  for (uint64_t r = 100; r < 100 + kDeadlineRounds; ++r) deadline.Add(RoundId(r), Seconds(2));
  EXPECT_EQ(deadline.Deadline(), Seconds(3));
  for (int i = 0; i < 100; ++i) deadline.Add(RoundId(99), Seconds(40));  // older than all of them
  EXPECT_EQ(deadline.Deadline(), Seconds(3));
}

TEST(AdaptiveDeadlineTest, CountsLateTimeInItsRound) {
  AdaptiveDeadline deadline(Milliseconds(1), Seconds(60));
  deadline.Add(RoundId(5), Seconds(2));
  deadline.Add(RoundId(7), Seconds(2));
  deadline.Add(RoundId(6), Seconds(4));
  EXPECT_EQ(deadline.Deadline(), Seconds(6));
}

TEST(AdaptiveDeadlineTest, WithoutALongestThereIsNone) {
  AdaptiveDeadline deadline(Seconds(5), InfiniteDuration());
  deadline.Add(RoundId(0), Seconds(1));
  EXPECT_EQ(deadline.Deadline(), InfiniteDuration());
}

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

TEST(LogRateTest, IgnoresRoundOfNoDuration) {
  LogRate rate;
  rate.Add(1000, absl::ZeroDuration());
  rate.Add(1000, -Seconds(1));
  EXPECT_EQ(rate.BytesPerSecond(), 0u);
}

}  // namespace
}  // namespace distro::server
