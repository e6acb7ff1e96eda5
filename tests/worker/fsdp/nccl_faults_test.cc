// A rank, a GPU or NCCL fails in every collective, on the model's GPUs: what each rank gets.
#include <atomic>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/worker/fsdp/collectives.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "tests/worker/fsdp/gpu_model/model_nccl.h"
#include "tests/worker/fsdp/gpu_model/torch_device.h"
#include "tests/worker/fsdp/ranks.h"
#include "worker/fsdp/nccl_communicator.h"

namespace distro::worker {
namespace {

using ::distro::testing::FakeClock;
using ::distro::worker::testing::AllCollectives;
using ::distro::worker::testing::Collective;
using ::distro::worker::testing::Communicators;
using ::distro::worker::testing::Cuts;
using ::distro::worker::testing::ModelDevice;
using ::distro::worker::testing::ModelGpus;
using ::distro::worker::testing::ModelNccl;
using ::distro::worker::testing::OnEveryRank;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRanks = 3;
constexpr absl::Duration kWatchdog = absl::Minutes(5);

std::vector<at::Device> Devices() {
  std::vector<at::Device> devices;
  for (int rank = 0; rank < kRanks; ++rank) devices.push_back(ModelDevice(rank));
  return devices;
}

// The collective to its end on the device; whether its results count.
absl::Status FinishedCollective(const std::string& name, int rank, Communicator& communicator) {
  const absl::Status status = Collective(name, communicator, ModelDevice(rank));
  if (!status.ok()) return status;
  return CatchTorch("result", [&] {
    c10::impl::VirtualGuardImpl guard(at::kPrivateUse1);
    guard.getStream(ModelDevice(rank)).synchronize();
    return communicator.Check("result");
  });
}

// operation, rank that fails
class NcclFaultTest : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  NcclFaultTest() { ModelGpus::Get().Reset(/*seed=*/static_cast<uint64_t>(victim()) + 1); }
  // Whatever fails, no memory is used without an order, and no rank's call may wait for ever.
  ~NcclFaultTest() override { EXPECT_THAT(ModelGpus::Get().failures(), IsEmpty()); }

  std::string operation() const { return std::get<0>(GetParam()); }
  int victim() const { return std::get<1>(GetParam()); }
  std::string victims_name() const { return absl::StrCat("rank ", victim()); }

  Communicators Make() {
    return MakeNcclCommunicators(
               nccl_, Devices(),
               {.watchdog = kWatchdog, .poll_interval = absl::Milliseconds(1), .clock = &clock_})
        .value();
  }
  // The collective on every rank.
  std::vector<absl::Status> Run(Communicators& communicators) {
    return OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
      return FinishedCollective(operation(), rank, communicator);
    });
  }
  void AwaitCall(int rank, ModelNccl::Call call) const {
    while (nccl_->last_call(rank) != call) std::this_thread::yield();
  }
  // As Run; the watchdog's time passes once the victim's call is so far, and others are accepted.
  std::vector<absl::Status> RunLong(Communicators& communicators, ModelNccl::Call victims_call) {
    std::atomic<bool> returned = false;
    std::thread time([&] {
      AwaitCall(victim(), victims_call);
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank != victim()) AwaitCall(rank, ModelNccl::Call::kAccepted);
      }
      for (; !returned; std::this_thread::yield()) clock_.Advance(kWatchdog);
    });
    const auto statuses = Run(communicators);
    returned = true;
    time.join();
    return statuses;
  }
  void ExpectNamed(const std::vector<absl::Status>& statuses, absl::StatusCode code) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim()) continue;
      EXPECT_EQ(statuses[rank].code(), code) << statuses[rank];
      EXPECT_THAT(statuses[rank].message(), HasSubstr(victims_name()));
    }
  }

  FakeClock clock_;
  const std::shared_ptr<ModelNccl> nccl_ = testing::MakeModelNccl();
};

TEST_P(NcclFaultTest, EndsOthersWhenRankDies) {
  Communicators communicators = Make();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank != victim()) return FinishedCollective(operation(), rank, communicator);
    communicators[rank].reset();
    return absl::OkStatus();
  });
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

// Its kernels are enqueued on no device.
TEST_P(NcclFaultTest, EndsAllOnOtherOperation) {
  Communicators communicators = Make();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank != victim()) return FinishedCollective(operation(), rank, communicator);
    return communicator.Barrier("another thing");
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"another thing\""), HasSubstr(operation())));
  }
}

// Two operations in another order.
TEST_P(NcclFaultTest, OrdersThatDifferEndAll) {
  Communicators communicators = Make();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    std::vector<std::string> names = {operation(),
                                      operation() == "barrier" ? "all-gather" : "barrier"};
    if (rank == victim()) std::swap(names[0], names[1]);
    const absl::Status status = FinishedCollective(names[0], rank, communicator);
    return status.ok() ? FinishedCollective(names[1], rank, communicator) : status;
  });
  for (const absl::Status& status : statuses)
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
}

TEST_P(NcclFaultTest, ArgumentsThatAreWrongOnOneRankEndTheOthers) {
  Communicators communicators = Make();
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank != victim()) return FinishedCollective(operation(), rank, communicator);
    const at::Tensor wrong =
        at::zeros({17}, at::TensorOptions(at::kFloat).device(ModelDevice(rank)));
    return communicator.StartAllGather("thing", Cuts(kRanks), wrong, wrong).status();
  });
  EXPECT_EQ(statuses[victim()].code(), absl::StatusCode::kInvalidArgument) << statuses[victim()];
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

TEST_P(NcclFaultTest, EndsOthersOnRefusedCall) {
  Communicators communicators = Make();
  nccl_->Refuse(victim(), ModelNccl::kInternalError);
  const auto statuses = Run(communicators);
  EXPECT_EQ(statuses[victim()].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(statuses[victim()].message(),
              AllOf(HasSubstr(operation()), HasSubstr("NCCL: internal error")));
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

// The others have enqueued their kernels, and the victim's handle is destroyed while it settles.
TEST_P(NcclFaultTest, FindsUnacceptedCallByWatchdog) {
  Communicators communicators = Make();
  nccl_->NeverAccept(victim());
  for (const absl::Status& status : RunLong(communicators, ModelNccl::Call::kCalled)) {
    EXPECT_THAT(status.code(),
                AnyOf(absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kAborted))
        << status;
    EXPECT_THAT(status.message(), HasSubstr(operation()));
  }
}

TEST_P(NcclFaultTest, AbortEndsACallThatIsNotAccepted) {
  Communicators communicators = Make();
  nccl_->NeverAccept(victim());
  std::thread abort([&] {
    AwaitCall(victim(), ModelNccl::Call::kCalled);
    communicators[victim()]->Abort(absl::DataLossError("bad page"));
  });
  const auto statuses = Run(communicators);
  abort.join();
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(victims_name()), HasSubstr("bad page")));
  }
}

TEST_P(NcclFaultTest, EndsAllOnRunningError) {
  Communicators communicators = Make();
  ModelGpus::Get().Hang(victim());
  std::thread fail([&] {
    AwaitCall(victim(), ModelNccl::Call::kAccepted);
    nccl_->FailRunning(victim(), ModelNccl::kRemoteError);
  });
  const auto statuses = Run(communicators);
  fail.join();
  for (const absl::Status& status : statuses)
    EXPECT_THAT(status.message(), HasSubstr("NCCL: remote error")) << status;
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

// Its kernel runs for ever, and so those of the others do.
TEST_P(NcclFaultTest, FindsHungGpuByWatchdog) {
  Communicators communicators = Make();
  ModelGpus::Get().Hang(victim());
  for (const absl::Status& status : RunLong(communicators, ModelNccl::Call::kAccepted)) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"thing\""), HasSubstr("within 5m")));
  }
}

TEST_P(NcclFaultTest, EndsOthersOnGpuError) {
  Communicators communicators = Make();
  ModelGpus::Get().Break(victim());
  const auto statuses = Run(communicators);
  EXPECT_THAT(statuses[victim()].message(), HasSubstr(absl::StrCat("GPU ", victim())));
  ExpectNamed(statuses, absl::StatusCode::kAborted);
}

// The second of two operations: the group has worked before.
TEST_P(NcclFaultTest, FindsStoppedRankByWatchdog) {
  Communicators communicators = Make();
  EXPECT_THAT(Run(communicators), Each(absl::OkStatus()));
  std::atomic<int> returned = 0;
  const auto statuses = OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    if (rank == victim()) {
      while (returned < kRanks - 1) {
        clock_.Advance(kWatchdog);
        std::this_thread::yield();
      }
    }
    const absl::Status status = FinishedCollective(operation(), rank, communicator);
    ++returned;
    return status;
  });
  ExpectNamed(statuses, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(statuses[victim()].code(), absl::StatusCode::kDeadlineExceeded);  // comes too late
}

INSTANTIATE_TEST_SUITE_P(EveryCollective, NcclFaultTest,
                         ::testing::Combine(::testing::ValuesIn(AllCollectives()),
                                            ::testing::Range(0, kRanks)));

TEST(NcclConnectTest, ReturnsError) {
  const auto nccl = testing::MakeModelNccl();
  nccl->RefuseConnect(ModelNccl::kRemoteError);
  const absl::Status status = MakeNcclCommunicators(nccl, Devices(), {}).status();
  EXPECT_EQ(status, absl::UnavailableError("connect: NCCL: remote error"));
}

TEST(NcclConnectTest, FailsOnUnacceptedRank) {
  const auto nccl = testing::MakeModelNccl();
  nccl->NeverAccept(1);
  const absl::Status status =
      MakeNcclCommunicators(nccl, Devices(), {.watchdog = absl::Milliseconds(1)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace distro::worker
