// A disk that fails or hangs during a run. The commit fails, and the log, the metric and /readyz
// name it. Nothing is announced that is not stored. The run continues by itself, to the same bits
// as on a good disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/net/http/http_get.h"
#include "tests/integration/tiny_aggregator.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro {
namespace {

using server::DiskOperation;
using server::DiskOperationName;
using testing::DiskFault;
using testing::ExpectSameBits;
using testing::FaultyDisk;
using ::testing::HasSubstr;
using testing::TinyAggregator;
using testing::TinyRun;
using testing::WorkerResult;

constexpr int kWorkers = 2;
constexpr uint64_t kRounds = 80;

class DiskFaultsTest : public ::testing::Test {
 protected:
  DiskFaultsTest() : training_([this] { workers_ = aggregator_.Train(); }) {}
  ~DiskFaultsTest() override { Finish(); }

  void Finish() {
    if (training_.joinable()) training_.join();
  }

  std::string Get(const std::string& path) const {
    const auto result = HttpGet(aggregator_.http_address(), path, absl::Seconds(30), 64 << 20);
    return result.ok() ? result->body : "";
  }
  double LogErrors(DiskOperation operation) const {
    const std::string series = absl::StrCat("distro_aggregator_log_errors_total{operation=\"",
                                            DiskOperationName(operation), "\"} ");
    const std::string metrics = Get("/metrics");
    const size_t at = metrics.find(series);
    return at == std::string::npos ? -1 : std::stod(metrics.substr(at + series.size()));
  }
  std::string LogText() {
    absl::MutexLock lock(&mu_);
    return log_text_;
  }

  // Two rounds on, the fault appears; it is told; a second attempt fails too; the fault goes; two
  // rounds more.
  void Suffer(const DiskFault& fault) {
    SCOPED_TRACE(absl::StrCat(DiskOperationName(*fault.operation), " errno ", fault.error_number));
    const std::string name(DiskOperationName(*fault.operation));
    aggregator_.AwaitRound(aggregator_.GetRun().round() + 2);
    const double errors = LogErrors(*fault.operation);
    disk_.Fail(fault);
    while (!HasFailure() && LogErrors(*fault.operation) < errors + 1) {
    }
    const uint64_t at = aggregator_.GetRun().round();
    ASSERT_LT(at, kRounds - 4) << "too few rounds are left";
    EXPECT_THAT(Get("/readyz?verbose"), HasSubstr(name));
    EXPECT_THAT(LogText(), HasSubstr(name));
    while (!HasFailure() && LogErrors(*fault.operation) < errors + 2) {
    }
    EXPECT_EQ(aggregator_.GetRun().round(), at) << "a round was committed that is not stored";
    disk_.Heal();
    aggregator_.AwaitRound(at + 2);
    EXPECT_THAT(Get("/readyz?verbose"), Not(HasSubstr(name)));
  }

  const TinyRun tiny_;
  const v1::RunConfig config_ = tiny_.Config(kWorkers, kRounds, /*overlap=*/0);
  FaultyDisk disk_;
  absl::Mutex mu_;
  std::string log_text_ ABSL_GUARDED_BY(mu_);
  Log log_{LogLevel::kWarning, Clock::Real(), [this](absl::string_view line) {
             absl::MutexLock lock(&mu_);
             log_text_.append(line.data(), line.size());
           }};
  TinyAggregator aggregator_{tiny_, config_, "data", &log_, Clock::Real(), &disk_};
  std::vector<WorkerResult> workers_;
  std::thread training_;
};

TEST_F(DiskFaultsTest, SurvivesAtEachOperationOfCommit) {
  for (const DiskFault& fault : {
           DiskFault{.operation = DiskOperation::kCreate, .error_number = EROFS},
           DiskFault{.operation = DiskOperation::kWrite, .error_number = ENOSPC},
           DiskFault{.operation = DiskOperation::kWrite, .error_number = EIO, .half_done = true},
           DiskFault{.operation = DiskOperation::kFsync, .error_number = EIO},
           DiskFault{.operation = DiskOperation::kFsync, .error_number = EDQUOT},
           DiskFault{.operation = DiskOperation::kLink, .error_number = ENOSPC},
           DiskFault{.operation = DiskOperation::kFsyncFolder, .error_number = EIO},
       }) {
    DiskFault in_rounds = fault;
    in_rounds.path_part = "/rounds";
    Suffer(in_rounds);
    if (HasFailure()) break;
  }
  disk_.Heal();
  Finish();
  Log quiet(LogLevel::kError);
  ExpectSameBits(workers_, TinyAggregator(tiny_, config_, "undisturbed", &quiet).Train());
}

TEST_F(DiskFaultsTest, HoldsOnlyRoundWhileFsyncHangs) {
  absl::Notification hangs, goes_on;
  disk_.SetHook([&](const testing::DiskCall& call, uint64_t) {
    if (call.operation != DiskOperation::kFsync || !absl::StrContains(call.path, "/rounds")) return;
    if (hangs.HasBeenNotified()) return;
    hangs.Notify();
    goes_on.WaitForNotification();
  });
  hangs.WaitForNotification();
  const uint64_t at = aggregator_.GetRun().round();
  for (int i = 0; i < 100; ++i) {  // calls are answered, heartbeats too
    ASSERT_EQ(aggregator_.GetRun().round(), at);
  }
  goes_on.Notify();
  Finish();
  Log quiet(LogLevel::kError);
  ExpectSameBits(workers_, TinyAggregator(tiny_, config_, "undisturbed", &quiet).Train());
}

}  // namespace
}  // namespace distro
