// distro-worker refused by an aggregator: its exit code, and the remedy in its log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/common/client/fake_aggregator.h"
#include "tests/testing/child_process.h"
#include "tests/testing/scratch_folder.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

struct RefusalCase {
  std::string name;
  absl::StatusCode code;
  std::string reason;
  int exit_code = 0;
  std::string remedy;
};

class WorkerExitTest : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(WorkerExitTest, SaysReasonAndRemedy) {
  const RefusalCase& refusal = GetParam();
  FakeAggregator aggregator;
  aggregator.Change([&](AggregatorState& state) {
    state.join_failures = {Refusal(refusal.code, refusal.reason, "as the aggregator puts it")};
  });
  testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("text.txt"), "some text").ok());
  testing::ChildProcess worker(
      DISTRO_WORKER, {"--aggregator=" + aggregator.address(), "--data=" + folder.File("text.txt"),
                      "--name=alice", "--insecure"});
  EXPECT_EQ(worker.ExitCode(), refusal.exit_code) << worker.log();
  EXPECT_THAT(worker.log(), HasSubstr("as the aggregator puts it"));
  EXPECT_THAT(worker.log(), HasSubstr(refusal.remedy));
  EXPECT_EQ(aggregator.state().joins.size(), 1u);
}

using absl::StatusCode;
INSTANTIATE_TEST_SUITE_P(
    Refusals, WorkerExitTest,
    ::testing::Values(
        RefusalCase{"OtherData", StatusCode::kFailedPrecondition, "other_data", 3, "check --data"},
        RefusalCase{"Replaced", StatusCode::kAborted, "replaced", 4, "a --name of its own"},
        RefusalCase{"Version", StatusCode::kFailedPrecondition, "version", 6,
                    "run the aggregator's version"},
        RefusalCase{"Quarantined", StatusCode::kPermissionDenied, "quarantined", 7,
                    "distroctl admit alice"},
        RefusalCase{"Unauthenticated", StatusCode::kUnauthenticated, "unauthenticated", 8,
                    "certificate or token"},
        RefusalCase{"Role", StatusCode::kPermissionDenied, "role", 8, "certificate or token"},
        RefusalCase{"WrongName", StatusCode::kPermissionDenied, "wrong_name", 8,
                    "made for this name"},
        RefusalCase{"TooSlow", StatusCode::kResourceExhausted, "too_slow", 9, "faster link"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace distro::worker
