#include "server/round/update_times.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

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

TEST(UpdateTimesTest, AnUpdateOfARoundThatIsOverIsTimedAndLate) {
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

}  // namespace
}  // namespace distro::server
