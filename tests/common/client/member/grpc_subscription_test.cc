// Following the log through cuts, new epochs and wrong frames; snapshots.
#include "common/base/file.h"
#include "common/base/reason.h"
#include "tests/common/client/member/exchange_fixture.h"

namespace distro {
namespace {

const grpc::Status kCut(grpc::StatusCode::UNAVAILABLE, "cut");

TEST_F(GrpcExchangeTest, DeliversEveryRoundInOrderUntilTheRunIsDone) {
  std::vector<v1::SubscribeRoundsResponse> frames = {OpenFrame(0)};
  for (auto& frame : FramesOf({0, 1, 2})) frames.push_back(frame);
  Begin({{frames, false, {}}});
  const absl::StatusOr<RoundEvent> opened = exchange_->Next();
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(std::holds_alternative<OpenedRound>(*opened));
  for (uint64_t round = 0; round < 3; ++round) ExpectCommit(round);
  EXPECT_EQ(exchange_->Next().status().code(), absl::StatusCode::kOutOfRange);
  uint64_t bytes = 0;
  for (const auto& round : rounds_) {
    for (const std::string& payload : round.payloads) bytes += payload.size();
  }
  EXPECT_EQ(exchange_->stats().received_payload_bytes, bytes);
}

// Cut after each number of frames in turn: every round still comes once.
TEST_F(GrpcExchangeTest, GoesOnAfterACutFromTheLastCommittedRound) {
  const std::vector<v1::SubscribeRoundsResponse> all = FramesOf({0, 1, 2});
  const size_t a_round = FramesOf({0}).size();
  for (size_t cut = 0; cut < all.size(); ++cut) {
    const std::vector<v1::SubscribeRoundsResponse> head(all.begin(), all.begin() + cut);
    const size_t committed = cut / a_round;
    const std::vector<v1::SubscribeRoundsResponse> tail(all.begin() + committed * a_round,
                                                        all.end());
    Begin({{head, true, kCut}, {tail, false, {}}});
    for (uint64_t round = 0; round < 3; ++round) ExpectCommit(round);
    const v1::SubscribeRoundsRequest again = aggregator_->state().subscriptions.back();
    EXPECT_EQ(again.run_id(), "run-1");
    EXPECT_EQ(again.from_round(), committed) << "cut=" << cut;
    EXPECT_EQ(again.last_hash(), committed == 0 ? 0 : Xxh3(rounds_[committed - 1].header_bytes()));
    EXPECT_EQ(exchange_->stats().reconnects, 1u);
  }
}

TEST_F(GrpcExchangeTest, DeliversRepeatedCommitOnce) {
  Begin({{FramesOf({0, 0}), false, {}}, {FramesOf({1, 2}), false, {}}});
  for (uint64_t round = 0; round < 3; ++round) ExpectCommit(round);
  EXPECT_EQ(exchange_->Next().status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(GrpcExchangeTest, ReconnectsOnFlippedPayloadByte) {
  std::vector<v1::SubscribeRoundsResponse> frames = FramesOf({0});
  (*frames[0].mutable_segment()->mutable_data())[0] ^= 1;
  Begin({{frames, false, {}}, {FramesOf({0}), false, {}}});
  ExpectCommit(0);
  EXPECT_GE(lines_.Count("invalid frame"), 1);
}

// Each attempt delivers the beginning of the round again. That must not reset the backoff, nor
// report it again.
TEST_F(GrpcExchangeTest, BacksOffFromDamagedRecord) {
  options_.backoff = {absl::Milliseconds(4), absl::Seconds(10)};
  const StreamScript damaged{{FramesOf({0}).front()},
                             true,
                             Refusal(absl::StatusCode::kDataLoss, "damaged", "round 0: damaged")};
  std::vector<StreamScript> streams(8, damaged);
  streams.push_back({FramesOf({0, 1, 2}), false, {}});
  const absl::Time began = absl::Now();
  Begin(streams);
  ExpectCommit(0);
  EXPECT_GE(absl::Now() - began, absl::Milliseconds(500));  // half of 4 + 8 + ... + 512 ms
  EXPECT_EQ(lines_.Count("subscription interrupted"), 1);
  EXPECT_TRUE(lines_.Await("subscription restored"));
}

TEST_F(GrpcExchangeTest, EndsWithDivergedRound) {
  const testing::BuiltRound other = testing::BuildRound(layout_, RoundId(1), 4711);
  std::vector<v1::SubscribeRoundsResponse> frames = FramesOf({0});
  for (auto& frame : testing::Frames(other)) frames.push_back(frame);
  Begin({{frames, false, {}}});
  ExpectCommit(0);
  const absl::Status status = exchange_->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "diverged");
}

TEST_F(GrpcExchangeTest, AnnouncesOpenRoundInNewEpoch) {
  std::vector<v1::SubscribeRoundsResponse> second = {OpenFrame(0, 2)};
  for (auto& frame : FramesOf({0}, 2)) second.push_back(frame);
  Begin({{{OpenFrame(0), FramesOf({0})[0]}, true, kCut}, {second, false, {}}});
  for (const uint64_t epoch : {1, 2}) {
    const absl::StatusOr<RoundEvent> event = exchange_->Next();
    ASSERT_TRUE(event.ok()) << event.status();
    ASSERT_TRUE(std::holds_alternative<OpenedRound>(*event));
    EXPECT_EQ(std::get<OpenedRound>(*event).epoch, EpochId(epoch));
  }
  ExpectCommit(0);
}

TEST_F(GrpcExchangeTest, FramesOfAPastEpochAreNotTaken) {
  aggregator_->Change([](AggregatorState& state) {
    state.join_response.set_epoch(2);
    state.heartbeat_response.set_epoch(2);
  });
  Begin({{FramesOf({0}, 1), false, {}}, {FramesOf({0}, 2), false, {}}});
  ExpectCommit(0);
  EXPECT_GE(lines_.Count("fenced"), 1);
}

TEST_F(GrpcExchangeTest, DeliversThroughQueueOfOne) {
  options_.queued_events = 1;
  Begin({{FramesOf({0, 1, 2}), false, {}}});
  for (uint64_t round = 0; round < 3; ++round) ExpectCommit(round);
  EXPECT_EQ(exchange_->Next().status().code(), absl::StatusCode::kOutOfRange);
}

class SnapshotTest : public GrpcExchangeTest {
 protected:
  SnapshotTest() : path_(folder_.File("snapshot")) {
    for (int i = 0; i < 1000; ++i) bytes_.push_back(static_cast<char>(i * 7));
    aggregator_->Change([this](AggregatorState& state) { state.snapshot = bytes_; });
    info_.set_size_bytes(bytes_.size());
    const Sha256Digest digest = Sha256(bytes_);
    info_.set_sha256(digest.data(), digest.size());
    MakeExchange();
    EXPECT_TRUE(exchange_->Join(Request()).ok());
  }

  void ExpectWhole() {
    EXPECT_EQ(ReadFile(path_).value_or("missing"), bytes_);
    EXPECT_EQ(ReadFile(path_ + ".part").status().code(), absl::StatusCode::kNotFound);
  }

  testing::ScratchFolder folder_;
  const std::string path_;
  std::string bytes_;
  v1::SnapshotInfo info_;
};

TEST_F(SnapshotTest, GoesOnWhereItWasCut) {
  aggregator_->Change([](AggregatorState& state) { state.snapshot_cuts = {0, 250, 999}; });
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  ExpectWhole();
  std::vector<uint64_t> offsets;
  for (const auto& download : aggregator_->state().downloads) offsets.push_back(download.offset());
  EXPECT_EQ(offsets, (std::vector<uint64_t>{0, 0, 250, 999}));
}

TEST_F(SnapshotTest, GoesOnWhereAnEarlierProcessWas) {
  ASSERT_TRUE(WriteFileAtomically(path_ + ".part", bytes_.substr(0, 600)).ok());
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  ExpectWhole();
  EXPECT_EQ(aggregator_->state().downloads[0].offset(), 600u);
}

TEST_F(SnapshotTest, StartsOverWhenTheEarlierPartIsOfAnotherSnapshot) {
  ASSERT_TRUE(WriteFileAtomically(path_ + ".part", std::string(600, 'x')).ok());
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  ExpectWhole();
  EXPECT_EQ(aggregator_->state().downloads.back().offset(), 0u);
}

TEST_F(SnapshotTest, RefusesBytesThatAreNotTheSnapshot) {
  aggregator_->Change([](AggregatorState& state) { state.snapshot[500] ^= 1; });
  EXPECT_EQ(exchange_->DownloadSnapshot(info_, path_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SnapshotTest, CallsMissingSnapshotPruned) {
  aggregator_->Change([](AggregatorState& state) {
    state.snapshot_failures = {grpc::Status(grpc::StatusCode::NOT_FOUND, "no such snapshot")};
  });
  EXPECT_EQ(ReasonOf(exchange_->DownloadSnapshot(info_, path_)), "pruned");
}

// Too few bytes to tell bandwidth from latency.
TEST_F(SnapshotTest, GivesNoRateOfSmallSnapshot) {
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  EXPECT_EQ(aggregator_->state().joins.size(), 1u);
}

class LargeSnapshotTest : public SnapshotTest {
 protected:
  LargeSnapshotTest() {
    bytes_.assign(3 << 20, 'x');
    const Sha256Digest digest = Sha256(bytes_);
    info_.set_sha256(digest.data(), digest.size());
    info_.set_size_bytes(bytes_.size());
    aggregator_->Change([this](AggregatorState& state) {
      state.snapshot = bytes_;
      state.heartbeat_response.set_head_round(2);
    });
  }
  // The next heartbeat reports that rounds continue.
  void AwaitHead() {
    const size_t seen = aggregator_->state().heartbeats.size();
    ASSERT_TRUE(aggregator_->Await(
        [seen](const AggregatorState& state) { return state.heartbeats.size() > seen + 1; }));
  }
};

TEST_F(LargeSnapshotTest, WhenTheRunIsUnderWayTheLinksRateIsReportedBeforeTraining) {
  AwaitHead();
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  const AggregatorState state = aggregator_->state();
  ASSERT_EQ(state.joins.size(), 2u);
  EXPECT_EQ(state.joins[0].download_bytes_per_second(), 0u);
  EXPECT_GT(state.joins[1].download_bytes_per_second(), 0u);
  EXPECT_EQ(state.joins[1].run_id(), "run-1");
}

TEST_F(LargeSnapshotTest, ForgetsRateOnceWorkerFollows) {
  AwaitHead();
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  ASSERT_TRUE(exchange_->Follow(&layout_, RoundId(0), 0).ok());
  aggregator_->Change(
      [](AggregatorState& state) { state.heartbeat_response.set_directive(v1::DIRECTIVE_REJOIN); });
  ASSERT_TRUE(
      aggregator_->Await([](const AggregatorState& state) { return state.joins.size() >= 3; }));
  EXPECT_EQ(aggregator_->state().joins[2].download_bytes_per_second(), 0u);
}

TEST_F(LargeSnapshotTest, FailsWhenLinkIsTooSlow) {
  AwaitHead();
  aggregator_->Change([](AggregatorState& state) {
    state.join_failures = {Refusal(absl::StatusCode::kResourceExhausted, "too_slow")};
  });
  EXPECT_EQ(ReasonOf(exchange_->DownloadSnapshot(info_, path_)), "too_slow");
}

TEST_F(LargeSnapshotTest, BeforeTheFirstRoundThereIsNothingToCatchUpWith) {
  aggregator_->Change([](AggregatorState& state) { state.heartbeat_response.set_head_round(0); });
  AwaitHead();
  ASSERT_TRUE(exchange_->DownloadSnapshot(info_, path_).ok());
  EXPECT_EQ(aggregator_->state().joins.size(), 1u);
}

TEST_F(SnapshotTest, NamesTheDisksFault) {
  EXPECT_EQ(exchange_->DownloadSnapshot(info_, folder_.File("no/such/folder")).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace distro
