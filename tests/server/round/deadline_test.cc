#include "server/round/deadline.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

using absl::InfiniteDuration;
using absl::Milliseconds;
using absl::Seconds;

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

TEST(AdaptiveDeadlineTest, OneTimeIsItsOwnPercentile) {
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

TEST(AdaptiveDeadlineTest, OneSlowWorkerOfTenDoesNotMoveIt) {
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

TEST(AdaptiveDeadlineTest, ALateTimeCountsInItsOwnRound) {
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

}  // namespace
}  // namespace distro::server
