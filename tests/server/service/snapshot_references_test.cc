// Who vouches for a snapshot that is uploaded, over real gRPC: nothing is stored that nobody knows to be right.
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "server/round/reference_state.h"
#include "tests/server/service/snapshots_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

class SnapshotReferencesTest : public SnapshotsTest {};

// Consistent in itself, but not what the replay of the log gave.
TEST_F(SnapshotReferencesTest, RefusesAStateHashThatIsNotTheReference) {
  AdvanceTo(2);
  std::vector<uint64_t> hashes(replica_->tensor_hashes().begin(), replica_->tensor_hashes().end());
  hashes[1] ^= 1;
  ASSERT_TRUE(Report(2, replica_->log_hash(), hashes).ok());
  EXPECT_EQ(Refusal(UnknownSnapshot()).code(), StatusCode::kInvalidArgument);
}

// Consistent in itself and of this log, but nobody says that these are the parameters which the log makes.
TEST_F(SnapshotReferencesTest, RefusesASnapshotThatNobodyVouchesFor) {
  AdvanceTo(2);
  const File file = UnknownSnapshot();
  const absl::Status refusal = Refusal(file);
  EXPECT_EQ(refusal.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refusal), "no_reference");
  ASSERT_TRUE(Report().ok());
  EXPECT_TRUE(Upload(file).stored);
}

// While a large file was coming so many rounds passed that the reference is not remembered.
TEST_F(SnapshotReferencesTest, AReferenceThatIsForgottenMeanwhileWasCheckedAtTheBeginning) {
  AdvanceTo(2);
  const File file = Snapshot();
  v1::UploadSnapshotRequest request;
  request.mutable_header()->set_run_id(run_id_);
  *request.mutable_header()->mutable_snapshot() = file.info;
  grpc::ClientContext context;
  const auto stream = worker_->stub()->UploadSnapshot(&context);
  stream->Write(request);
  v1::UploadSnapshotResponse response;
  ASSERT_TRUE(stream->Read(&response));
  AdvanceTo(3 + server::kReferenceRounds);
  request.mutable_frame()->set_data(file.bytes);
  stream->Write(request);
  stream->WritesDone();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.has_stored());
  EXPECT_TRUE(FromGrpcStatus(stream->Finish()).ok());
}

// An archiver that lags by more rounds than are compared.
TEST_F(SnapshotReferencesTest, AnArchiverThatLagsFarIsTakenAtItsWord) {
  AdvanceTo(2);
  const File file = UnknownSnapshot();
  const std::vector<uint64_t> hashes(replica_->tensor_hashes().begin(),
                                     replica_->tensor_hashes().end());
  AdvanceTo(3 + server::kReferenceRounds);
  ASSERT_TRUE(Report(2, file.info.log_hash(), hashes).ok());
  EXPECT_TRUE(Upload(file).stored);
}

TEST_F(SnapshotReferencesTest, AReportMustBeOfTheLog) {
  AdvanceTo(2);
  const std::vector<uint64_t> hashes(replica_->tensor_hashes().begin(),
                                     replica_->tensor_hashes().end());
  EXPECT_EQ(ReasonOf(Report(2, replica_->log_hash() ^ 1, hashes)), "diverged");
  EXPECT_EQ(Report(3, replica_->log_hash(), hashes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Report(2, replica_->log_hash(), {}).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Report().ok());
  EXPECT_TRUE(Report().ok());
}

}  // namespace
}  // namespace distro::testing
