// Only the record of a round confirms an uploaded snapshot, over real gRPC. Limits the effect of
// one archiver's credential on a run.
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "server/log/run_store.h"
#include "server/round/reference_state.h"
#include "tests/server/service/snapshots_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

class SnapshotReferencesTest : public SnapshotsTest {
 protected:
  using TensorHashes = std::vector<uint64_t>;

  TensorHashes Hashes() const {
    return {replica_->tensor_hashes().begin(), replica_->tensor_hashes().end()};
  }
  TensorHashes FalseHashes() const {
    TensorHashes hashes = Hashes();
    hashes[1] ^= 1;
    return hashes;
  }

  // Parameters of somebody's own making before a round of the log, consistent in themselves.
  struct Poison {
    File file;
    TensorHashes hashes;
  };
  // Before the replica's next round.
  Poison MakePoison() {
    TensorBuffer parameters(layout_);
    for (int t = 0; t < parameters.tensors(); ++t) parameters.tensor(t)[0] = 13;
    parameters.tensor(0)[0] += static_cast<float>(replica_->next_round().value());
    const Replica made(&layout_, backend_.get(), std::move(parameters), replica_->next_round(),
                       replica_->log_hash());
    return {FileOf(made), {made.tensor_hashes().begin(), made.tensor_hashes().end()}};
  }

  // As an older version took them from an archiver, while no aggregator runs.
  void StoreAsBefore(const std::vector<File>& files) {
    run_.reset();
    worker_ = nullptr;
    server_ = nullptr;
    const auto store = server::RunStore::Open(folder_.File("data"), &disk_, &clock_, &log_);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const File& file : files) {
      server::SnapshotStore* const snapshots = (*store)->snapshots();
      ASSERT_TRUE(snapshots->AppendIncoming(file.info, 0, file.bytes).ok());
      const absl::Status status = snapshots->Adopt(file.info);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // The worker goes on from its own replica.
  void StartAgain() {
    run_.reset();
    Start(config_);
    worker_ = NewWorker("a", ++incarnation_);
    ASSERT_TRUE(worker_->Join().ok());
    worker_->Heartbeat(replica_->next_round().value(), replica_->log_hash());
    run_.emplace(worker_.get(), &*replica_);
  }
  std::vector<uint64_t> Listed() {
    std::vector<uint64_t> rounds;
    const v1::GetRunResponse run = GetRun();
    for (const v1::SnapshotInfo& info : run.snapshots()) rounds.push_back(info.round());
    return rounds;
  }
  // A worker that joins again has the bits of the run's head.
  void ExpectAWholeRun() {
    auto late = NewWorker("late", ++incarnation_);
    ASSERT_TRUE(late->Join().ok());
    const v1::SnapshotInfo info = late->joined().snapshot();
    parameters_.emplace(layout_);
    ReadInto(Download(info));
    Replica joined(&layout_, backend_.get(), std::move(*parameters_), RoundId(info.round()),
                   info.log_hash());
    auto rounds = late->Subscribe(&layout_, info.round(), info.log_hash());
    while (joined.next_round() < replica_->next_round()) {
      const auto round = rounds->NextCommit();
      ASSERT_TRUE(round.ok()) << round.status();
      ASSERT_TRUE(joined.Apply(*round).ok());
    }
    EXPECT_EQ(joined.StateHash(), replica_->StateHash());
  }

  uint64_t incarnation_ = 7;
};

// Two false snapshots of old rounds, each reported first; then the same after a restart.
TEST_F(SnapshotReferencesTest, RefusesFalseSnapshots) {
  std::vector<Poison> poisons;
  for (const uint64_t round : {2, 4}) {
    AdvanceTo(round);
    poisons.push_back(MakePoison());
  }
  AdvanceTo(6 + server::kReferenceRounds);
  for (int start = 0; start < 2; ++start) {
    for (const Poison& poison : poisons) {
      ASSERT_TRUE(
          Report(poison.file.info.round(), poison.file.info.log_hash(), poison.hashes).ok());
      EXPECT_EQ(Refusal(poison.file).code(), StatusCode::kInvalidArgument);
    }
    EXPECT_EQ(GetRun().first_round(), 0);
    ExpectAWholeRun();
    StartAgain();
  }
}

TEST_F(SnapshotReferencesTest, KeepsWorkersDespiteFalseReport) {
  AdvanceTo(3);
  ASSERT_TRUE(Report(3, replica_->log_hash(), FalseHashes()).ok());
  const uint64_t before = replica_->log_hash();
  const TensorHashes wrong = FalseHashes();
  AdvanceTo(4);
  ASSERT_TRUE(Report(3, before, wrong).ok());
  ASSERT_TRUE(Report(4, replica_->log_hash(), FalseHashes()).ok());
  EXPECT_EQ(worker_->Heartbeat(4, replica_->log_hash()).directive(), v1::DIRECTIVE_CONTINUE);
  AdvanceTo(6);
}

// The reference is the log's: reports change nothing, in either direction.
TEST_F(SnapshotReferencesTest, NeedsNoReport) {
  AdvanceTo(2);
  const File file = Snapshot();
  ASSERT_TRUE(Report(2, replica_->log_hash(), FalseHashes()).ok());
  AdvanceTo(3);
  EXPECT_TRUE(Upload(file).stored);
}

TEST_F(SnapshotReferencesTest, HoldsSnapshotOfOpenRound) {
  AdvanceTo(2);
  const File file = Snapshot();
  ASSERT_TRUE(Report().ok());
  const absl::Status refusal = Refusal(file);
  EXPECT_EQ(refusal.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refusal), "no_reference");
  AdvanceTo(3);
  EXPECT_TRUE(Upload(file).stored);
}

TEST_F(SnapshotReferencesTest, RefusesAStateHashThatIsNotTheReference) {
  AdvanceTo(2);
  const File file = Snapshot();
  ASSERT_TRUE(run_->AdvanceTo(3, 0, /*wrong_hash=*/1).ok());
  EXPECT_EQ(Refusal(file).code(), StatusCode::kInvalidArgument);
}

// An archiver that lags by more rounds than are compared.
TEST_F(SnapshotReferencesTest, TakesSnapshotOfLaggingArchiver) {
  const File file = SnapshotAt(2);
  AdvanceTo(3 + server::kReferenceRounds);
  StartAgain();
  EXPECT_TRUE(Upload(file).stored);
}

TEST_F(SnapshotReferencesTest, DropsUnconfirmedOfOlderVersion) {
  AdvanceTo(2);
  const File false_one = MakePoison().file;
  AdvanceTo(4);
  const File false_two = MakePoison().file;
  AdvanceTo(5);
  StoreAsBefore({false_one, false_two});
  StartAgain();
  EXPECT_THAT(Listed(), ::testing::ElementsAre(0));
  EXPECT_EQ(GetRun().first_round(), 0);
  ExpectAWholeRun();
  // They do not stand for the newest two either: the first true one makes no result go.
  const File six = SnapshotAt(6);
  ASSERT_TRUE(Upload(six).stored);
  EXPECT_EQ(GetRun().first_round(), 0);
  ASSERT_TRUE(Upload(SnapshotAt(8)).stored);
  EXPECT_THAT(Listed(), ::testing::ElementsAre(8, 6, 0));
  EXPECT_EQ(GetRun().first_round(), 6);
}

TEST_F(SnapshotReferencesTest, KeepsTrueSnapshotBesideFalse) {
  const File right = SnapshotAt(2);
  AdvanceTo(4);
  const File wrong = MakePoison().file;
  AdvanceTo(5);
  StoreAsBefore({right, wrong});
  StartAgain();
  EXPECT_THAT(Listed(), ::testing::ElementsAre(2, 0));
  EXPECT_EQ(GetRun().first_round(), 0);
  ExpectAWholeRun();
}

TEST_F(SnapshotReferencesTest, RefusesDivergedReport) {
  AdvanceTo(2);
  EXPECT_EQ(ReasonOf(Report(2, replica_->log_hash() ^ 1, Hashes())), "diverged");
  EXPECT_EQ(Report(3, replica_->log_hash(), Hashes()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Report(2, replica_->log_hash(), {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Report(0, 0, Hashes()).code(), StatusCode::kInvalidArgument);  // not the initial one's
  EXPECT_TRUE(Report().ok());
  EXPECT_TRUE(Report().ok());
}

}  // namespace
}  // namespace distro::testing
