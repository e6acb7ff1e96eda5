// The archiver's calls against an aggregator that plays a script.
#include "tools/archiver/aggregator_client.h"

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/common/client/fake_aggregator.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tools/archiver/round_feed.h"

namespace distro::tools {
namespace {

class AggregatorClientTest : public ::testing::Test {
 protected:
  AggregatorClientTest() {
    client_ = *AggregatorClient::Open({aggregator_.address(), true},
                                      {absl::Milliseconds(2), absl::Milliseconds(20)}, &stopper_,
                                      &log_, Clock::Real());
  }

  // The first call of `rpc` was refused; the second came over another connection, where a newer aggregator may be.
  void ExpectAnotherConnection(const std::string& rpc) {
    const AggregatorState state = aggregator_.state();
    const std::vector<std::string>& peers = state.peers.at(rpc);
    ASSERT_EQ(peers.size(), 2u) << rpc;
    EXPECT_NE(peers[0], peers[1]) << rpc;
  }

  const grpc::Status fenced_ = Refusal(absl::StatusCode::kFailedPrecondition, "fenced");
  testing::ScratchFolder folder_;
  FakeAggregator aggregator_;
  Log log_{LogLevel::kError};
  Stopper stopper_;
  std::unique_ptr<AggregatorClient> client_;
};

TEST_F(AggregatorClientTest, AFencedAggregatorIsAskedForTheRunOverAnotherConnection) {
  aggregator_.Change([this](AggregatorState& state) {
    state.run_failures = {fenced_};
    state.run.set_run_id("run-1");
    v1::SnapshotInfo* snapshot = state.run.add_snapshots();
    snapshot->set_sha256(std::string(32, 's'));
    snapshot->set_size_bytes(1);
  });
  EXPECT_TRUE(client_->AwaitRun(0).ok());
  ExpectAnotherConnection("GetRun");
}

TEST_F(AggregatorClientTest, AFencedAggregatorIsToldTheStateOverAnotherConnection) {
  aggregator_.Change([this](AggregatorState& state) { state.report_failures = {fenced_}; });
  EXPECT_TRUE(client_->ReportState(v1::ReportStateRequest()).ok());
  ExpectAnotherConnection("ReportState");
}

TEST_F(AggregatorClientTest, AFencedAggregatorIsSentTheSnapshotOverAnotherConnection) {
  aggregator_.Change(
      [this](AggregatorState& state) { state.snapshot_upload_failures = {fenced_}; });
  EXPECT_TRUE(client_->SendSnapshot(v1::UploadSnapshotHeader(), "bytes").ok());
  ExpectAnotherConnection("UploadSnapshot");
}

TEST_F(AggregatorClientTest, ASnapshotOfAFencedAggregatorIsFetchedOverAnotherConnection) {
  v1::SnapshotInfo snapshot;
  const Sha256Digest digest = Sha256("bytes");
  snapshot.set_sha256(digest.data(), digest.size());
  snapshot.set_size_bytes(5);
  aggregator_.Change([this](AggregatorState& state) {
    state.snapshot_failures = {fenced_};
    state.snapshot = "bytes";
  });
  EXPECT_TRUE(client_->FetchSnapshot(snapshot, folder_.File("snapshot")).ok());
  EXPECT_EQ(*ReadFile(folder_.File("snapshot")), "bytes");
  ExpectAnotherConnection("DownloadSnapshot");
}

TEST_F(AggregatorClientTest, AFencedAggregatorIsFollowedOverAnotherConnection) {
  const Layout layout = testing::SmallLayout();
  const testing::BuiltRound round = testing::BuildRound(layout, RoundId(0), 0);
  aggregator_.Change([&](AggregatorState& state) {
    state.streams = {{{}, true, fenced_}, {testing::Frames(round, EpochId(1)), false, {}}};
  });
  RoundFeed feed(
      {.run_id = "run-1", .next_round = RoundId(0), .epoch = EpochId(1), .rounds = RoundId(1)},
      {.client = client_.get(),
       .layout = &layout,
       .stopper = &stopper_,
       .log = &log_,
       .clock = Clock::Real()});
  EXPECT_TRUE(feed.Next().ok());
  ExpectAnotherConnection("SubscribeRounds");
}

}  // namespace
}  // namespace distro::tools
