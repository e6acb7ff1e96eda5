// A rank dies, fails or stops in every collective: every other rank gets an error that names it and
// the operation.
#include <atomic>
#include <stdexcept>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/worker/fsdp/collectives.h"
#include "tests/worker/fsdp/ranks.h"
#include "worker/fsdp/rank_threads.h"
#include "worker/fsdp/thread_communicator.h"

namespace distro::worker {
namespace {

using ::distro::testing::FakeClock;
using ::distro::worker::testing::AllCollectives;
using ::distro::worker::testing::Collective;
using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::Cuts;
using ::distro::worker::testing::OnEveryRank;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

void AwaitWaiting(const ThreadGroup& group, int ranks) {
  while (group.waiting() != ranks) std::this_thread::yield();
}

// operation, rank that fails
class RankFaultTest : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string operation() const { return std::get<0>(GetParam()); }
  int victim() const { return std::get<1>(GetParam()); }
  std::string victims_name() const { return absl::StrCat("rank ", victim()); }

  void ExpectNamed(const std::vector<absl::Status>& statuses, absl::StatusCode code) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim()) continue;
      EXPECT_EQ(statuses[rank].code(), code) << statuses[rank];
      EXPECT_THAT(statuses[rank].message(),
                  AllOf(HasSubstr(operation()), HasSubstr("\"thing\""), HasSubstr(victims_name())));
    }
  }
};

TEST_P(RankFaultTest, EndsOthersWhenRankDies) {
  Communicators communicators = MakeThreadGroup(kRanks, {})->TakeCommunicators();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank != victim()) return Collective(operation(), communicator);
    communicators[rank].reset();
    return absl::OkStatus();
  });
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

TEST_P(RankFaultTest, AfterTheEndNothingThatWasDoneCounts) {
  Communicators communicators = MakeThreadGroup(kRanks, {})->TakeCommunicators();
  for (const auto& communicator : communicators) EXPECT_TRUE(communicator->Check("sum").ok());
  communicators[victim()]->Abort(absl::DataLossError("bad page"));
  for (const auto& communicator : communicators) {
    const absl::Status status = communicator->Check("sum");
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"sum\""), HasSubstr(victims_name())));
  }
}

TEST_P(RankFaultTest, EndsOthersWhenRankThrows) {
  RankThreads threads(MakeThreadGroup(kRanks, {})->TakeCommunicators(), {});
  std::vector<absl::Status> statuses(kRanks);
  const absl::Status status =
      threads.Run("gradient", [&](int rank, Communicator& communicator) -> absl::Status {
        if (rank == victim()) throw std::runtime_error("out of luck");
        return statuses[rank] = Collective(operation(), communicator);
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(victims_name()), HasSubstr("gradient"), HasSubstr("out of luck")));
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

// The second of two operations: the group has worked before.
TEST_P(RankFaultTest, FindsStoppedRankByWatchdog) {
  FakeClock clock;
  const auto group = MakeThreadGroup(kRanks, {.watchdog = absl::Minutes(5), .clock = &clock});
  Communicators communicators = group->TakeCommunicators();
  absl::Notification go_on;
  std::thread watch([&] {
    AwaitWaiting(*group, kRanks - 1);
    clock.Advance(absl::Minutes(5));
    group->CheckWatchdog();
    AwaitWaiting(*group, 0);  // they have looked at the clock
    go_on.Notify();
  });
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank == victim()) go_on.WaitForNotification();
    return Collective(operation(), communicator);
  });
  watch.join();
  ExpectNamed(statuses, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(statuses[victim()].code(), absl::StatusCode::kDeadlineExceeded);  // comes too late
}

TEST_P(RankFaultTest, ArgumentsThatAreWrongOnOneRankEndTheOthers) {
  Communicators communicators = MakeThreadGroup(kRanks, {})->TakeCommunicators();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank != victim()) return Collective(operation(), communicator);
    const at::Tensor wrong = at::zeros({17}, at::kFloat);
    return communicator.StartAllGather("thing", Cuts(kRanks), wrong, wrong).status();
  });
  EXPECT_EQ(statuses[victim()].code(), absl::StatusCode::kInvalidArgument) << statuses[victim()];
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

TEST_P(RankFaultTest, EndsAllOnOtherOperation) {
  Communicators communicators = MakeThreadGroup(kRanks, {})->TakeCommunicators();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank != victim()) return Collective(operation(), communicator);
    return communicator.Barrier("another thing");
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"another thing\""), HasSubstr(operation())));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryCollective, RankFaultTest,
                         ::testing::Combine(::testing::ValuesIn(AllCollectives()),
                                            ::testing::Range(0, kRanks)));

TEST(ThreadGroupTest, RefusesOperationsOnceEnded) {
  Communicators communicators = MakeThreadGroup(2, {})->TakeCommunicators();
  communicators[1]->Abort(absl::DataLossError("bad page"));
  for (const std::string& name : AllCollectives()) {
    const absl::Status status = Collective(name, *communicators[0]);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(name), HasSubstr("rank 1 failed: bad page")));
  }
}

// Real time: a group with a clock that moves by itself needs no call.
TEST(ThreadGroupTest, WatchesRealClock) {
  Communicators communicators =
      MakeThreadGroup(2, {.watchdog = absl::Milliseconds(1)})->TakeCommunicators();
  const absl::Status status = communicators[0]->Barrier("thing");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("barrier \"thing\""), HasSubstr("rank 1")));
}

}  // namespace
}  // namespace distro::worker
