#include "server/limits/stall_watch.h"

#include "gtest/gtest.h"

namespace distro::server {
namespace {

absl::Duration At(int64_t seconds) { return absl::Seconds(seconds); }

TEST(StallWatchTest, SilenceStalls) {
  const StallWatch watch(At(10), 100, At(5));
  EXPECT_FALSE(watch.Stalled(At(14)));
  EXPECT_TRUE(watch.Stalled(At(15)));
}

TEST(StallWatchTest, FindsTrickle) {
  StallWatch watch(At(10), 100, At(0));
  for (int i = 1; i < 10; ++i) watch.Moved(9, At(i));
  EXPECT_TRUE(watch.Stalled(At(10)));
}

TEST(StallWatchTest, EnoughBytesBeginANewTime) {
  StallWatch watch(At(10), 100, At(0));
  watch.Moved(99, At(8));
  watch.Moved(1, At(9));
  EXPECT_FALSE(watch.Stalled(At(18)));
  watch.Moved(99, At(18));
  EXPECT_TRUE(watch.Stalled(At(19)));
}

TEST(StallWatchTest, ProgressCountsHoweverSmall) {
  StallWatch watch(At(10), 100, At(0));
  watch.Progress(At(9));
  EXPECT_FALSE(watch.Stalled(At(18)));
  EXPECT_TRUE(watch.Stalled(At(19)));
}

TEST(StallWatchTest, LeavesOutOurTime) {
  StallWatch watch(At(10), 100, At(0));
  watch.Pause(At(6));
  watch.Pause(At(7));
  EXPECT_FALSE(watch.Stalled(At(100)));
  watch.Resume(At(100));
  EXPECT_FALSE(watch.Stalled(At(103)));
  EXPECT_TRUE(watch.Stalled(At(104)));
}

TEST(StallWatchTest, ProgressWhileWeWorkCountsOnce) {
  StallWatch watch(At(10), 100, At(0));
  watch.Pause(At(5));
  watch.Progress(At(20));
  watch.Resume(At(30));
  EXPECT_FALSE(watch.Stalled(At(39)));
  EXPECT_TRUE(watch.Stalled(At(40)));
}

}  // namespace
}  // namespace distro::server
