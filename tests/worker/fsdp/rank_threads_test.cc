#include "worker/fsdp/rank_threads.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/fsdp/thread_communicator.h"

namespace distro::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<Communicator>> Make(int ranks) {
  return MakeThreadGroup(ranks, {})->TakeCommunicators();
}

TEST(RankThreadsTest, KeepsThreadOfRank) {
  RankThreads threads(Make(3), {});
  ASSERT_EQ(threads.ranks(), 3);
  std::vector<std::thread::id> first(3), second(3);
  std::atomic<int> sum = 0;
  const auto piece = [&](std::vector<std::thread::id>* ids) {
    return threads.Run("piece", [&, ids](int rank, Communicator& communicator) {
      (*ids)[rank] = std::this_thread::get_id();
      EXPECT_EQ(communicator.rank(), rank);
      sum += rank;
      return communicator.Barrier("end");
    });
  };
  EXPECT_TRUE(piece(&first).ok());
  EXPECT_TRUE(piece(&second).ok());
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::set<std::thread::id>(first.begin(), first.end()).size(), 3u);
  EXPECT_EQ(sum, 6);
}

TEST(RankThreadsTest, EndsGroupWithCodeOfError) {
  RankThreads threads(Make(2), {});
  const auto fail = [](int rank, Communicator& communicator) {
    return rank == 1 ? absl::ResourceExhaustedError("no memory") : communicator.Barrier("end");
  };
  const absl::Status status = threads.Run("gradient", fail);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "rank 1: gradient: no memory");
  bool ran = false;
  EXPECT_EQ(threads.Run("next",
                        [&](int, Communicator&) {
                          ran = true;
                          return absl::OkStatus();
                        }),
            status);
  EXPECT_FALSE(ran);
}

TEST(RankThreadsTest, ReportsFailedStart) {
  RankThreads threads(Make(2), {.start = [](int rank) {
                        return rank == 1 ? absl::NotFoundError("no such device") : absl::OkStatus();
                      }});
  const absl::Status status = threads.Run(
      "load", [](int, Communicator& communicator) { return communicator.Barrier("loaded"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1"), HasSubstr("no such device")));
}

// A rank that never returns: the others are back, so Run gives up on it and names it.
TEST(RankThreadsTest, NamesStuckRank) {
  const auto go_on = std::make_shared<absl::Notification>();
  const auto left = std::make_shared<absl::Notification>();
  {
    RankThreads threads(Make(2), {.watchdog = absl::Milliseconds(1)});
    const absl::Status status = threads.Run("gradient", [=](int rank, Communicator&) {
      if (rank == 0) {
        go_on->WaitForNotification();
        left->Notify();
        return absl::OkStatus();
      }
      return absl::InternalError("it broke");
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("gradient: rank 0 did not return"),
                                        HasSubstr("rank 1: gradient: it broke")));
  }
  go_on->Notify();
  left->WaitForNotification();
}

}  // namespace
}  // namespace distro::worker
