// What an archiver gives to an aggregator that plays a script.
#include "tools/archiver/aggregator_client.h"

#include <gtest/gtest.h>

#include "tests/common/client/follow/follow_fixture.h"

namespace distro::tools {
namespace {

class AggregatorClientTest : public FollowTest {
 protected:
  AggregatorClientTest() {
    client_ = *AggregatorClient::Open({aggregator_.address(), true}, follower_);
  }

  std::unique_ptr<AggregatorClient> client_;
};

TEST_F(AggregatorClientTest, ReconnectsToReportState) {
  aggregator_.Change([this](AggregatorState& state) { state.report_failures = {fenced_}; });
  EXPECT_TRUE(client_->ReportState(v1::ReportStateRequest()).ok());
  ExpectAnotherConnection("ReportState");
}

TEST_F(AggregatorClientTest, ReconnectsToSendSnapshot) {
  aggregator_.Change(
      [this](AggregatorState& state) { state.snapshot_upload_failures = {fenced_}; });
  EXPECT_TRUE(client_->SendSnapshot(v1::UploadSnapshotHeader(), "bytes").ok());
  ExpectAnotherConnection("UploadSnapshot");
}

TEST_F(AggregatorClientTest, StopsOnFinalError) {
  aggregator_.Change([](AggregatorState& state) {
    state.report_failures = {Refusal(absl::StatusCode::kFailedPrecondition, ""),
                             Refusal(absl::StatusCode::kUnavailable, "")};
  });
  EXPECT_EQ(client_->ReportState(v1::ReportStateRequest()).code(),
            absl::StatusCode::kFailedPrecondition);
  state_.End(absl::CancelledError("stopped"));
  EXPECT_EQ(client_->ReportState(v1::ReportStateRequest()), absl::CancelledError("stopped"));
}

}  // namespace
}  // namespace distro::tools
