// A worker with an invite refuses data and runs that do not match the invite before it uses
// resources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/file.h"
#include "common/base/process/stop_signal.h"
#include "tests/common/client/fake_aggregator.h"
#include "tests/testing/scratch_folder.h"
#include "worker/commands.h"
#include "worker/run_worker.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

class InvitedWorkerTest : public ::testing::Test {
 protected:
  InvitedWorkerTest() {
    options_.data = folder_.File("text.txt");
    EXPECT_TRUE(WriteFileAtomically(options_.data, "some text").ok());
    options_.channel.aggregator = aggregator_.address();
    options_.channel.insecure = true;
    options_.name = "alice";
    aggregator_.Change(
        [](AggregatorState& state) { state.join_response.mutable_config()->set_name("held"); });
  }

  ExitCode Run() { return RunWorker(options_, &stop_, &log_); }

  testing::ScratchFolder folder_;
  StopSignal stop_;
  std::string said_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view line) { absl::StrAppend(&said_, line); }};
  FakeAggregator aggregator_;
  WorkerOptions options_;
};

TEST_F(InvitedWorkerTest, EndsBeforeItJoinsWithOtherData) {
  options_.data_fingerprint = std::string(64, '0');
  EXPECT_EQ(Run(), kExitRefused);
  EXPECT_THAT(said_, HasSubstr("the invite is for a run on " + options_.data_fingerprint));
  EXPECT_TRUE(aggregator_.state().joins.empty());
}

TEST_F(InvitedWorkerTest, EndsBeforeItDownloadsTheModelOfAnotherRun) {
  options_.run = "meant";
  EXPECT_EQ(Run(), kExitRefused);
  EXPECT_THAT(said_, HasSubstr("is for run meant"));
  EXPECT_THAT(said_, HasSubstr("holds held"));
  EXPECT_EQ(aggregator_.state().joins.size(), 1u);
  EXPECT_TRUE(aggregator_.state().downloads.empty());
}

TEST_F(InvitedWorkerTest, GoesOnWithTheDataThatTheInviteMeans) {
  const absl::StatusOr<std::string> printed =
      DataFingerprint({.data = options_.data, .data_format = "auto"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  options_.data_fingerprint = printed->substr(0, 64);
  options_.run = "held";
  Run();
  ASSERT_EQ(aggregator_.state().joins.size(), 1u) << said_;
  EXPECT_EQ(aggregator_.state().joins[0].data_fingerprint(), options_.data_fingerprint);
}

}  // namespace
}  // namespace distro::worker
