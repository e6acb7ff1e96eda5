// Clocks that jump change timestamps and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "tests/integration/tiny_aggregator.h"
#include "tests/testing/worker/training.h"

namespace distro {
namespace {

using testing::ExpectSameBits;
using testing::TinyAggregator;
using testing::TinyRun;
using testing::WorkerResult;

constexpr uint64_t kRounds = 30;
constexpr int kWorkers = 2;

// Real monotonic time, plus the forward jumps that a test requests. Wall time that differs at each
// reading, by up to ten hours in either direction.
class JumpingClock final : public Clock {
 public:
  absl::Duration MonotonicNow() const override {
    return Clock::Real()->MonotonicNow() + absl::Seconds(ahead_.load());
  }
  absl::Time WallNow() const override {
    const int64_t seconds = SplitMix64(5, looks_.fetch_add(1)) % 72'000;
    return Clock::Real()->WallNow() + absl::Seconds(seconds - 36'000 + years_.load() * 31'536'000);
  }
  void JumpForward(absl::Duration by) { ahead_ += absl::ToInt64Seconds(by); }
  void SetYears(int64_t years) { years_ = years; }

 private:
  mutable std::atomic<uint64_t> looks_{0};
  std::atomic<int64_t> ahead_{0};
  std::atomic<int64_t> years_{0};
};

class ClockTest : public ::testing::Test {
 protected:
  std::vector<WorkerResult> Undisturbed() {
    return TinyAggregator(tiny_, config_, "undisturbed", &log_).Train();
  }

  const TinyRun tiny_;
  const v1::RunConfig config_ = tiny_.Config(kWorkers, kRounds, /*overlap=*/0);
  Log log_{LogLevel::kError};
  JumpingClock clock_;
};

TEST_F(ClockTest, ToleratesWallClockJumps) {
  TinyAggregator aggregator(tiny_, config_, "data", &log_, &clock_);
  ExpectSameBits(aggregator.Train(), Undisturbed());
}

// Epochs come from the wall clock, and rise even if it is set back by years.
TEST_F(ClockTest, EpochsRiseWhenTheWallClockGoesBackBetweenStarts) {
  TinyAggregator aggregator(tiny_, config_, "data", &log_, &clock_);
  std::vector<WorkerResult> workers;
  std::thread training([&] { workers = aggregator.Train(); });
  uint64_t epoch = 0;
  for (const int years : {30, -30, 0}) {
    clock_.SetYears(years);
    aggregator.AwaitRound(aggregator.GetRun().round() + 4);
    aggregator.Stop();
    aggregator.Start();
    const uint64_t next = aggregator.GetRun().epoch();
    EXPECT_GT(next, epoch);
    epoch = next;
  }
  training.join();
  ExpectSameBits(workers, Undisturbed());
}

// A machine that was suspended: leases are over all at once, everyone joins again.
TEST_F(ClockTest, ToleratesMissingHour) {
  TinyAggregator aggregator(tiny_, config_, "data", &log_, &clock_);
  std::vector<WorkerResult> workers;
  std::thread training([&] { workers = aggregator.Train(); });
  for (int i = 0; i < 3; ++i) {
    aggregator.AwaitRound(aggregator.GetRun().round() + 4);
    clock_.JumpForward(absl::Hours(1));
  }
  training.join();
  ASSERT_EQ(workers.size(), size_t{kWorkers});
  for (const WorkerResult& worker : workers) {
    ASSERT_TRUE(worker.status.ok()) << worker.status;
    EXPECT_EQ(worker.summary.state_hash, workers[0].summary.state_hash);
    EXPECT_EQ(worker.summary.next_round, kRounds);
  }
}

}  // namespace
}  // namespace distro
