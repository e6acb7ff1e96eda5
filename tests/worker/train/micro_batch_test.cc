#include "worker/train/micro_batch.h"

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "bench/local/local_exchange.h"
#include "common/base/process/host_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/local_aggregator.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MicroBatchCandidatesTest, AreDivisorsThatLeaveSomethingToEveryRank) {
  EXPECT_THAT(MicroBatchCandidates(12, 1), ElementsAre(12, 6, 4, 3, 2, 1));
  EXPECT_THAT(MicroBatchCandidates(12, 4), ElementsAre(3, 2, 1));
  EXPECT_THAT(MicroBatchCandidates(7, 2), ElementsAre(1));
  EXPECT_THAT(MicroBatchCandidates(2, 4), ElementsAre(1)) << "fewer than ranks";
}

class FindLargestMicroBatchTest : public ::testing::Test {
 protected:
  // Nodes of at most `plan` samples can be made, and steps of at most `step` fit.
  absl::StatusOr<NodeOfMicroBatch> Find(int plan, int step) {
    return FindLargestMicroBatch(
        {8, 4, 2, 1},
        [&](int samples) -> absl::StatusOr<std::unique_ptr<Node>> {
          made_.push_back(samples);
          if (samples > plan) return absl::ResourceExhaustedError("the plan");
          return nullptr;
        },
        [&](Node*, int samples) -> absl::Status {
          tried_.push_back(samples);
          return samples > step ? absl::ResourceExhaustedError("the step") : absl::OkStatus();
        },
        &log_);
  }
  Log log_{LogLevel::kError};
  std::vector<int> made_, tried_;
};

TEST_F(FindLargestMicroBatchTest, TriesWhatThePlanLetsPassFromTheLargestDown) {
  const auto found = Find(4, 2);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->samples, 2);
  EXPECT_THAT(made_, ElementsAre(8, 4, 2));
  EXPECT_THAT(tried_, ElementsAre(4, 2));
}

TEST_F(FindLargestMicroBatchTest, FailsIfNone) {
  EXPECT_EQ(Find(8, 0).status(), absl::ResourceExhaustedError("the step"));
  EXPECT_EQ(Find(0, 8).status(), absl::ResourceExhaustedError("the plan"));
}

TEST(TakeTrialGradientTest, PeakIsForgottenAndFoundAgain) {
  constexpr size_t kBytes = 64 << 20;
  ForgetPeakResidentBytes();
  const int64_t before = PeakResidentBytes();
  ASSERT_GT(before, 0);
  // Of the kernel itself: an allocator may keep what is freed.
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            /*fd=*/-1, /*offset=*/0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  ASSERT_EQ(munmap(memory, kBytes), 0);
  EXPECT_GT(PeakResidentBytes(), before + static_cast<int64_t>(kBytes) / 2);
  ForgetPeakResidentBytes();
  EXPECT_LT(PeakResidentBytes(), before + static_cast<int64_t>(kBytes) / 2);
}

// 4 samples of 16 tokens fit any machine.
TEST(AutoMicroBatchTest, TakesAllSamplesThatFit) {
  const testing::TinyRun tiny;
  const auto train = [&](int micro_batch_samples, int ranks, uint64_t limit) {
    const auto aggregator = Aggregate(tiny, tiny.DeltaConfig(1, 2, 2));
    server::LocalExchange exchange(aggregator.get());
    return TrainWorker(tiny, {.name = "w",
                              .exchange = &exchange,
                              .micro_batch_samples = micro_batch_samples,
                              .node = {.ranks = ranks, .memory_limit_bytes = limit}});
  };
  const testing::WorkerResult found = train(kAutoMicroBatch, 1, 0);
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.summary.state_hash, train(4, 1, 0).summary.state_hash);
  const testing::WorkerResult of_two = train(kAutoMicroBatch, 2, 0);
  ASSERT_TRUE(of_two.status.ok()) << of_two.status;
  EXPECT_EQ(of_two.summary.state_hash, train(2, 2, 0).summary.state_hash);
  const absl::Status none = train(kAutoMicroBatch, 1, 1000).status;
  EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted) << none;
}

}  // namespace
}  // namespace distro::worker
