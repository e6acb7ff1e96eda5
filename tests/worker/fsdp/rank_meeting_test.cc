// Ranks enqueue an operation together. Shown with a model of GPUs whose collective kernels spin
// until every peer's kernel runs too.
#include <thread>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/fsdp/thread_group.h"

namespace distro::worker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

// A GPU a rank. A kernel of operation n ends once every rank has enqueued operation n.
class SpinningGpus {
 public:
  void Enqueue(int rank) {
    absl::MutexLock lock(&mu_);
    ++enqueued_[rank];
  }
  // Whether a call of this rank returns that may wait for all GPUs (cudaMalloc, cudaFree, a copy of
  // memory that is not pinned, a module that is loaded): not while a kernel waits for this rank.
  bool BlockingCallReturns(int rank) const {
    absl::MutexLock lock(&mu_);
    for (const int enqueued : enqueued_) {
      if (enqueued > enqueued_[rank]) return false;
    }
    return true;
  }
  int spinning() const {
    absl::MutexLock lock(&mu_);
    int ranks = 0;
    for (const int enqueued : enqueued_) ranks += enqueued > 0;
    return ranks;
  }

 private:
  mutable absl::Mutex mu_;
  int enqueued_[kRanks] ABSL_GUARDED_BY(mu_) = {};
};

class RankMeetingTest : public ::testing::Test {
 protected:
  absl::Status Operation(int rank) {
    return meeting_.Together(rank, {.operation = "all-gather", .what = "thing"}, [&] {
      gpus_.Enqueue(rank);
      return absl::OkStatus();
    });
  }
  std::vector<absl::Status> OnEveryRank(const std::function<absl::Status(int rank)>& body) {
    std::vector<absl::Status> statuses(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] { statuses[rank] = body(rank); });
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  SpinningGpus gpus_;
  RankMeeting meeting_{kRanks, {}};
};

// The last rank allocates before its part, when the others have done all they can without it.
TEST_F(RankMeetingTest, KeepsDevicesFreeForMissingRank) {
  const auto statuses = OnEveryRank([&](int rank) {
    if (rank == kRanks - 1) {
      while (meeting_.waiting() < kRanks - 1 && gpus_.spinning() < kRanks - 1)
        std::this_thread::yield();
      EXPECT_TRUE(gpus_.BlockingCallReturns(rank));
    }
    return Operation(rank);
  });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

// Ranks that allocate as soon as an operation is enqueued, and before the next.
TEST_F(RankMeetingTest, ReleasesRanksOnceAllEnqueued) {
  const auto statuses = OnEveryRank([&](int rank) {
    for (int i = 0; i < 200; ++i) {
      const absl::Status status = Operation(rank);
      if (!status.ok()) return status;
      EXPECT_TRUE(gpus_.BlockingCallReturns(rank));
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, Each(absl::OkStatus()));
}

TEST_F(RankMeetingTest, EndsOthersOnFailedEnqueue) {
  const RankCall call = {.operation = "all-gather", .what = "thing"};
  const auto statuses = OnEveryRank([&](int rank) {
    return meeting_.Together(rank, call, [&] {
      return rank == 1 ? absl::UnavailableError("no queue") : absl::OkStatus();
    });
  });
  EXPECT_EQ(statuses[1], absl::UnavailableError("no queue"));
  for (const int rank : {0, 2}) {
    EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kAborted);
    EXPECT_THAT(statuses[rank].message(), HasSubstr("rank 1 failed: no queue"));
  }
}

TEST_F(RankMeetingTest, RefusesDifferingOperations) {
  const auto statuses = OnEveryRank([&](int rank) {
    const RankCall call = {.operation = "all-gather", .what = rank == 1 ? "other" : "thing"};
    return meeting_.Together(rank, call, [&] {
      gpus_.Enqueue(rank);
      return absl::OkStatus();
    });
  });
  for (const absl::Status& status : statuses)
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"other\""), HasSubstr("\"thing\"")));
  EXPECT_EQ(gpus_.spinning(), 0);
}

}  // namespace
}  // namespace distro::worker
