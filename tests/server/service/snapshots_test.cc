// Snapshots over real gRPC: accepted and refused ones, workers that start from them, and the rounds
// that the log drops.
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "tests/server/service/snapshots_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

TEST_F(SnapshotsTest, StartsJoinerFromUpload) {
  const UploadResult result = Upload(SnapshotAt(4));
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(result.stored);
  AdvanceTo(6);

  auto late = NewWorker("late");
  ASSERT_TRUE(late->Join().ok());
  const v1::SnapshotInfo& info = late->joined().snapshot();
  EXPECT_EQ(info.round(), 4);
  parameters_.emplace(layout_);
  ReadInto(Download(info));
  Replica joined(&layout_, backend_.get(), std::move(*parameters_), RoundId(4), info.log_hash());
  EXPECT_EQ(joined.StateHash(), info.state_hash());
  auto rounds = late->Subscribe(&layout_, 4, info.log_hash());
  while (joined.next_round() < replica_->next_round()) {
    const auto round = rounds->NextCommit();
    ASSERT_TRUE(round.ok()) << round.status();
    ASSERT_TRUE(joined.Apply(*round).ok());
  }
  EXPECT_EQ(joined.StateHash(), replica_->StateHash());
}

TEST_F(SnapshotsTest, ContinuesInterruptedUpload) {
  const File file = SnapshotAt(2);
  const UploadResult half = Upload(file, file.bytes.size() / 2);
  EXPECT_EQ(half.status.code(), StatusCode::kCancelled);
  EXPECT_EQ(half.offset, 0);
  const UploadResult rest = Upload(file);
  EXPECT_TRUE(rest.stored) << rest.status;
  EXPECT_EQ(rest.offset, file.bytes.size() / 2);
  const UploadResult again = Upload(file);
  EXPECT_TRUE(again.stored) << again.status;
  EXPECT_FALSE(again.offset.has_value());
}

TEST_F(SnapshotsTest, ContinuesUploadAfterRestart) {
  const File file = SnapshotAt(2);
  EXPECT_FALSE(Upload(file, file.bytes.size() / 2).stored);
  run_.reset();
  Start(config_);
  worker_ = NewWorker("a");
  const UploadResult rest = Upload(file);
  EXPECT_TRUE(rest.stored) << rest.status;
  EXPECT_EQ(rest.offset, file.bytes.size() / 2);
  run_.reset();
  Start(config_);
  EXPECT_EQ(GetRun().snapshots(0).round(), 2);
}

// The bytes are not those of the SHA-256; the same bytes, unharmed, are taken afterwards.
TEST_F(SnapshotsTest, RefusesAFlippedBit) {
  const File good = SnapshotAt(2);
  File bad = good;
  bad.bytes[bad.bytes.size() / 2] ^= 1;
  EXPECT_EQ(Refusal(bad).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Upload(good).stored);
}

// With the SHA-256 of the flipped bytes: the state hash tells.
TEST_F(SnapshotsTest, RefusesParametersThatAreNotOfTheStateHash) {
  File bad = SnapshotAt(2);
  bad.bytes.back() ^= 1;
  Announce(&bad);
  EXPECT_EQ(Refusal(bad).code(), StatusCode::kInvalidArgument);
}

TEST_F(SnapshotsTest, RefusesAnotherRound) {
  File file = SnapshotAt(3);
  file.info.set_round(2);
  EXPECT_EQ(ReasonOf(Refusal(file)), "diverged");
  file.info.set_round(5);
  EXPECT_EQ(Refusal(file).code(), StatusCode::kInvalidArgument);
  file.info.set_round(0);
  EXPECT_EQ(Refusal(file).code(), StatusCode::kInvalidArgument);
}

TEST_F(SnapshotsTest, RefusesAnotherLogAndAnotherRun) {
  File file = SnapshotAt(3);
  EXPECT_EQ(ReasonOf(Upload(file, SIZE_MAX, "other-1").status), "other_run");
  file.info.set_log_hash(file.info.log_hash() ^ 1);
  EXPECT_EQ(ReasonOf(Refusal(file)), "diverged");
}

TEST_F(SnapshotsTest, RefusesAnotherSize) {
  File file = SnapshotAt(2);
  file.info.set_size_bytes(file.info.size_bytes() + 1);
  EXPECT_EQ(Refusal(file).code(), StatusCode::kInvalidArgument);
  file.info.set_size_bytes(uint64_t{1} << 62);
  EXPECT_EQ(Refusal(file).code(), StatusCode::kInvalidArgument);
}

// Messages in an order that no archiver sends.
TEST_F(SnapshotsTest, RefusesMessagesOutOfOrder) {
  const File file = SnapshotAt(2);
  v1::UploadSnapshotRequest header, first, gap, empty, huge;
  header.mutable_header()->set_run_id(run_id_);
  *header.mutable_header()->mutable_snapshot() = file.info;
  first.mutable_frame()->set_data(file.bytes.substr(0, 100));
  gap.mutable_frame()->set_offset(101);
  gap.mutable_frame()->set_data("x");
  empty.mutable_frame();
  huge.mutable_frame()->set_data(std::string(kMaxFrameBytes + 1, 'x'));
  v1::UploadSnapshotRequest beyond = first;
  beyond.mutable_frame()->set_data(file.bytes + "x");
  const std::vector<v1::UploadSnapshotRequest> kSequences[] = {
      {first},         {{}},           {header, header}, {header, gap},
      {header, empty}, {header, huge}, {header, beyond}};
  for (const auto& sequence : kSequences) {
    grpc::ClientContext context;
    const auto stream = worker_->stub()->UploadSnapshot(&context);
    for (const v1::UploadSnapshotRequest& request : sequence) stream->Write(request);
    v1::UploadSnapshotResponse response;
    while (stream->Read(&response)) EXPECT_FALSE(response.has_stored());
    EXPECT_EQ(FromGrpcStatus(stream->Finish()).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(Upload(file).stored);
}

// The newest upload continues and the previous one ends. Neither damages the file.
TEST_F(SnapshotsTest, EndsOlderUpload) {
  const File file = SnapshotAt(2);
  v1::UploadSnapshotRequest request;
  request.mutable_header()->set_run_id(run_id_);
  *request.mutable_header()->mutable_snapshot() = file.info;
  grpc::ClientContext context;
  const auto old = worker_->stub()->UploadSnapshot(&context);
  old->Write(request);
  v1::UploadSnapshotResponse response;
  ASSERT_TRUE(old->Read(&response));
  const UploadResult half = Upload(file, 100);
  EXPECT_EQ(half.offset, 0);
  request.mutable_frame()->set_data(file.bytes.substr(0, 100));
  old->Write(request);
  EXPECT_FALSE(old->Read(&response));
  EXPECT_EQ(FromGrpcStatus(old->Finish()).code(), StatusCode::kAborted);
  EXPECT_TRUE(Upload(file).stored);
}

TEST_F(SnapshotsTest, DropsTheRoundsBeforeTheOlderOfTwoSnapshots) {
  const File first = SnapshotAt(3);
  ASSERT_TRUE(Upload(first).stored);
  EXPECT_EQ(GetRun().first_round(), 0);
  ASSERT_TRUE(Upload(SnapshotAt(6)).stored);
  const v1::GetRunResponse run = GetRun();
  EXPECT_EQ(run.first_round(), 3);
  ASSERT_EQ(run.snapshots_size(), 3);
  EXPECT_EQ(run.snapshots(0).round(), 6);
  EXPECT_EQ(run.snapshots(1).round(), 3);
  EXPECT_EQ(run.snapshots(2).round(), 0);

  auto late = NewWorker("late");
  ASSERT_TRUE(late->Join().ok());
  EXPECT_EQ(ReasonOf(late->Subscribe(&layout_)->NextCommit().status()), "pruned");
  EXPECT_EQ(late->Subscribe(&layout_, 3, first.info.log_hash())->NextCommit()->round(), RoundId(3));
  ASSERT_TRUE(Upload(SnapshotAt(9)).stored);
  EXPECT_EQ(GetRun().snapshots_size(), 3);
  EXPECT_EQ(GetRun().first_round(), 6);
}

}  // namespace
}  // namespace distro::testing
