#include "worker/train/phase_clock.h"

#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace distro::worker {
namespace {

absl::Duration SumOfPhases(const PhaseClock& clock) {
  absl::Duration sum;
  for (int i = 0; i < kPhases; ++i) sum += clock.Spent(static_cast<Phase>(i));
  return sum;
}

TEST(PhaseClockTest, CountsMomentsInOnePhase) {
  testing::FakeClock time;
  PhaseClock phases(&time);
  time.Advance(absl::Seconds(1));
  {
    PhaseScope compress(&phases, Phase::kCompress);
    time.Advance(absl::Seconds(2));
    {
      PhaseScope wait(&phases, Phase::kWait);
      time.Advance(absl::Seconds(4));
    }
    time.Advance(absl::Seconds(8));
  }
  time.Advance(absl::Seconds(16));
  EXPECT_EQ(phases.Spent(Phase::kIdle), absl::Seconds(17));
  EXPECT_EQ(phases.Spent(Phase::kCompress), absl::Seconds(10));
  EXPECT_EQ(phases.Spent(Phase::kWait), absl::Seconds(4));
  EXPECT_EQ(SumOfPhases(phases), phases.Total());
}

TEST(PhaseClockTest, CountsTheRunningPhase) {
  testing::FakeClock time;
  PhaseClock phases(&time);
  phases.Switch(Phase::kApply);
  time.Advance(absl::Seconds(3));
  EXPECT_EQ(phases.Spent(Phase::kApply), absl::Seconds(3));
  EXPECT_EQ(SumOfPhases(phases), phases.Total());
}

}  // namespace
}  // namespace distro::worker
