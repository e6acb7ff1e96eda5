#include "worker/fsdp/collective_time.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/worker/fsdp/collectives.h"
#include "tests/worker/fsdp/ranks.h"
#include "worker/fsdp/thread_communicator.h"

namespace distro::worker {
namespace {

using distro::testing::FakeClock;
using testing::Cuts;
using testing::Finish;

// Rank 0 comes, five seconds pass, rank 1 comes: only the one that waited has spent them, on what
// it waited in.
TEST(CollectiveTimeTest, CountsWaitOfRank) {
  FakeClock clock;
  const auto time = std::make_shared<CollectiveTime>();
  const auto group = MakeThreadGroup(2, {.watchdog = absl::Hours(1), .clock = &clock});
  testing::Communicators communicators;
  for (auto& communicator : group->TakeCommunicators())
    communicators.push_back(TimeCommunicator(std::move(communicator), time, &clock));
  for (const char* operation : {"all-gather", "reduce-scatter", "all-to-all", "barrier"}) {
    std::thread first([&] { EXPECT_TRUE(testing::Collective(operation, *communicators[0]).ok()); });
    while (group->waiting() != 1) std::this_thread::yield();
    clock.Advance(absl::Seconds(5));
    EXPECT_TRUE(testing::Collective(operation, *communicators[1]).ok());
    first.join();
  }
  for (const absl::Duration spent : time->spent()) EXPECT_EQ(spent, absl::Seconds(5));
}

TEST(CollectiveTimeTest, TransfersAreWaitedForInAnyOrder) {
  const auto time = std::make_shared<CollectiveTime>();
  auto alone = TimeCommunicator(std::move(MakeThreadGroup(1, {})->TakeCommunicators()[0]), time);
  const at::Tensor own = at::ones({1}, at::kFloat), whole = at::zeros({1}, at::kFloat);
  const Transfer first = *alone->StartAllGather("a", Cuts(1), own, whole);
  const Transfer second = *alone->StartReduceScatter("b", Cuts(1), own, at::kFloat,
                                                     Accumulation::kStore, at::zeros({1}));
  EXPECT_TRUE(alone->Wait(second).ok());
  EXPECT_TRUE(alone->Wait(first).ok());
  EXPECT_TRUE(whole.equal(own));
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter})
    EXPECT_GT(time->spent()[static_cast<size_t>(op)], absl::ZeroDuration());
}

}  // namespace
}  // namespace distro::worker
