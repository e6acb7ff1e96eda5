// State hashes: the log's reference, the consequences for workers that differ, and that an
// archiver's report has none.
#include "absl/strings/str_cat.h"
#include "common/run/record/log_reference.h"
#include "gmock/gmock.h"
#include "server/round/snapshot_transfers.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class ManagerStatesTest : public testing::ManagerTest {
 protected:
  // To the open round, with the state hash that the tensors' hashes make.
  void UploadWithTensors(const std::string& name, const std::vector<uint64_t>& hashes) {
    const uint64_t round = manager_->status().round.value();
    v1::UploadHeader header = HeaderOf(name, round, CombineTensorHashes(hashes));
    header.mutable_tensor_hashes()->Assign(hashes.begin(), hashes.end());
    const auto ticket = manager_->BeginUpload(header);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    UploadSegments(*ticket, 0, run_->layout->segments());
  }
  std::string TensorName(int tensor) const {
    return run_->layout->manifest().tensors()[tensor].name;
  }
  // Of a round up to the head.
  v1::ReportStateRequest ReportOf(uint64_t round, const std::vector<uint64_t>& hashes) const {
    v1::ReportStateRequest report;
    report.set_run_id(run_->run_id);
    report.set_round(round);
    report.set_log_hash(log_file_->HashBefore(RoundId(round)));
    report.mutable_tensor_hashes()->Assign(hashes.begin(), hashes.end());
    return report;
  }
  v1::SnapshotInfo InfoOf(uint64_t round, uint64_t state_hash) const {
    v1::SnapshotInfo info;
    info.set_round(round);
    info.set_log_hash(log_file_->HashBefore(RoundId(round)));
    info.set_state_hash(state_hash);
    return info;
  }
};

TEST_F(ManagerStatesTest, ResyncsDifferingWorker) {
  OpenRound(Config(3), {"a", "b", "c"});
  Round({"a", "b", "c"});
  std::vector<uint64_t> hashes(run_->layout->tensors().size(), 7);
  v1::UploadHeader header = HeaderOf("a", 1);
  header.mutable_tensor_hashes()->Assign(hashes.begin(), hashes.end());
  EXPECT_EQ(manager_->BeginUpload(header).status().code(), StatusCode::kInvalidArgument);
  UploadWithTensors("a", hashes);
  UploadWithTensors("b", hashes);
  hashes[1] = 8;
  UploadWithTensors("c", hashes);
  Step();
  EXPECT_EQ(observer_.mismatches, 1);
  EXPECT_EQ(StateOf("c"), v1::MEMBER_STATE_JOINING);
  const auto answer = manager_->Heartbeat(BeatOf("c"));
  EXPECT_EQ(answer->directive(), v1::DIRECTIVE_RESYNC);
  EXPECT_THAT(answer->reason(), HasSubstr(TensorName(1)));
}

// A single report that is not a worker's: it is reported to the operator, and no worker is
// affected.
TEST_F(ManagerStatesTest, MovesNobodyForArchiver) {
  OpenRound(Config(1), {"a"});
  Round({"a"});
  std::vector<uint64_t> hashes(run_->layout->tensors().size(), 7);
  UploadWithTensors("a", hashes);
  Step();
  hashes[1] = 8;
  ASSERT_TRUE(manager_->ReportState(ReportOf(1, hashes)).ok());
  EXPECT_EQ(observer_.mismatches, 1);
  EXPECT_EQ(manager_->status().mismatch,
            absl::StrCat("round 1, of an archiver, in ", TensorName(1)));
  ASSERT_TRUE(manager_->ReportState(ReportOf(1, hashes)).ok());
  EXPECT_EQ(observer_.mismatches, 1);  // told once
  // Also when it reports before the round is committed, as an archiver does that keeps up.
  ASSERT_TRUE(manager_->ReportState(ReportOf(2, hashes)).ok());
  Round({"a"});
  EXPECT_EQ(observer_.mismatches, 2);
  EXPECT_EQ(StateOf("a"), v1::MEMBER_STATE_ACTIVE);
  EXPECT_EQ(manager_->Heartbeat(BeatOf("a"))->directive(), v1::DIRECTIVE_CONTINUE);
}

TEST_F(ManagerStatesTest, ChecksArchiverAfterRestart) {
  OpenRound(Config(1), {"a"});
  for (int i = 0; i < 3; ++i) Round({"a"});
  Start(Config(1));
  const std::vector<uint64_t> hashes(run_->layout->tensors().size(), 7);
  ASSERT_TRUE(manager_->ReportState(ReportOf(2, hashes)).ok());
  EXPECT_EQ(observer_.mismatches, 1);
  EXPECT_EQ(manager_->status().mismatch, "round 2, of an archiver");
}

TEST_F(ManagerStatesTest, RefusesReportAgainstSnapshot) {
  OpenRound(Config(1), {"a"});
  Round({"a"});
  const std::vector<uint64_t> hashes(run_->layout->tensors().size(), 7);
  const absl::Status refused = manager_->ReportState(ReportOf(0, hashes));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("the run's own snapshot"));
  EXPECT_EQ(observer_.mismatches, 0);
  EXPECT_EQ(StateOf("a"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(ManagerStatesTest, ReportsMustBeOfThisLog) {
  OpenRound(Config(1), {"a"});
  Round({"a"});
  const std::vector<uint64_t> hashes(run_->layout->tensors().size(), 7);
  v1::ReportStateRequest report = ReportOf(1, hashes);
  report.set_run_id("other");
  EXPECT_EQ(ReasonOf(manager_->ReportState(report)), "other_run");
  report = ReportOf(1, hashes);
  report.set_round(2);
  EXPECT_EQ(manager_->ReportState(report).code(), StatusCode::kInvalidArgument);
  report = ReportOf(1, hashes);
  report.set_log_hash(report.log_hash() ^ 1);
  EXPECT_EQ(ReasonOf(manager_->ReportState(report)), "diverged");
  EXPECT_EQ(manager_->ReportState(ReportOf(1, {})).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(manager_->ReportState(ReportOf(1, hashes)).ok());
}

// Only the record of the round counts, regardless of an archiver's report.
TEST_F(ManagerStatesTest, ConfirmsHashesOfLoggedRounds) {
  OpenRound(Config(2), {"a", "b"});
  Round({"a", "b"});
  Upload("a", 1, 5);
  Upload("b", 1, 5);
  Step();
  EXPECT_TRUE(CheckConfirmed(*log_file_, InfoOf(1, 5)).ok());
  EXPECT_EQ(CheckConfirmed(*log_file_, InfoOf(1, 6)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(CheckConfirmed(*log_file_, InfoOf(2, 5))), "no_reference");
  EXPECT_EQ(CheckConfirmed(*log_file_, InfoOf(0, testing::kInitialStateHash)).code(),
            StatusCode::kInvalidArgument);
  v1::SnapshotInfo info = InfoOf(1, 5);
  info.set_log_hash(info.log_hash() ^ 1);
  EXPECT_EQ(ReasonOf(CheckConfirmed(*log_file_, info)), "diverged");
  info.set_round(3);
  EXPECT_EQ(CheckConfirmed(*log_file_, info).code(), StatusCode::kInvalidArgument);
  Upload("a", 2, 6);
  Upload("b", 2, 7);
  Step();
  Start(Config(2));
  EXPECT_TRUE(CheckConfirmed(*log_file_, InfoOf(1, 5)).ok());
  EXPECT_EQ(ReasonOf(CheckConfirmed(*log_file_, InfoOf(2, 6))), "no_majority");
}

}  // namespace
}  // namespace distro::server
