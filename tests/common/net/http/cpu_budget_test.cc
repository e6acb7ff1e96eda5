#include "common/net/http/http_limits.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

const absl::Duration kNow = absl::ZeroDuration();

class CpuBudgetTest : public ::testing::Test {
 protected:
  absl::Duration Wait() { return budget_.WaitAt(now_); }

  absl::Duration now_ = absl::Seconds(1000);
  CpuBudget budget_{/*share=*/0.25, /*burst=*/absl::Seconds(2)};
};

TEST_F(CpuBudgetTest, LetsABurstThrough) {
  EXPECT_EQ(Wait(), kNow);
  budget_.Spend(absl::Seconds(1));
  EXPECT_EQ(Wait(), kNow);
}

TEST_F(CpuBudgetTest, RefillsWithTheShare) {
  EXPECT_EQ(Wait(), kNow);
  budget_.Spend(absl::Seconds(3));
  EXPECT_EQ(Wait(), absl::Seconds(4));
  now_ += absl::Seconds(3);
  EXPECT_EQ(Wait(), absl::Seconds(1));
  now_ += absl::Seconds(1) + absl::Milliseconds(4);
  EXPECT_EQ(Wait(), kNow);
}

TEST_F(CpuBudgetTest, SavesAtMostTheBurst) {
  EXPECT_EQ(Wait(), kNow);
  now_ += absl::Hours(1);
  EXPECT_EQ(Wait(), kNow);
  budget_.Spend(absl::Seconds(4));
  EXPECT_EQ(Wait(), absl::Seconds(8));
}

// All that is used over a long time is the burst and the share.
TEST_F(CpuBudgetTest, HoldsTheShareOverTime) {
  const absl::Duration start = now_;
  absl::Duration used;
  while (now_ - start < absl::Minutes(10)) {
    if (const absl::Duration wait = Wait(); wait > kNow) {
      now_ += wait;
    } else {
      budget_.Spend(absl::Milliseconds(30));
      used += absl::Milliseconds(30);
      now_ += absl::Milliseconds(30);
    }
  }
  EXPECT_LE(used, absl::Seconds(2) + absl::Minutes(10) * 0.25 + absl::Milliseconds(30));
  EXPECT_GE(used, absl::Minutes(10) * 0.25 - absl::Seconds(1));
}

TEST_F(CpuBudgetTest, WaitsWhileClockStands) {
  EXPECT_EQ(Wait(), kNow);
  budget_.Spend(absl::Seconds(2));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Wait(), absl::Milliseconds(1));
}

}  // namespace
}  // namespace distro
