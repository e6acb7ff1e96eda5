#include "tools/distroctl/replay_log.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "server/log/round_log.h"
#include "server/log/run_store.h"
#include "server/log/snapshot_check.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"

namespace distro::tools {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRounds = 4;

void NoProgress(absl::string_view) {}

// A data folder with a run of the small layout and some rounds, and what its replicas must hold.
class ReplayLogTest : public ::testing::Test {
 protected:
  ReplayLogTest() {
    EXPECT_TRUE(
        WriteCheckpointFolder(folder_.File("model"), "{}", layout_, TensorBuffer(layout_)).ok());
    store_ = *server::RunStore::Open(data_dir(), server::Disk::Real(), Clock::Real(), &log_);
    v1::RunConfig config;
    config.set_name("test");
    config.set_rounds(10);
    config.set_method(v1::METHOD_SIGNS);
    config.set_sequence_length(8);
    config.set_samples_per_worker(1);
    config.set_workers(v1::WORKERS_PYTHON);  // their model is nobody else's
    config.set_segment_blocks(2);
    EXPECT_TRUE(store_->CreateRunFromFolder(config, folder_.File("model")).ok());
  }

  std::string data_dir() const { return folder_.File("data"); }
  std::string RecordPath(uint64_t round) const {
    return absl::StrCat(store_->rounds_dir(), "/000000000", round, ".record");
  }

  void WriteStart(server::RoundLog* rounds) {
    v1::StartHeader start;
    start.set_run_id(store_->run()->run_id);
    const Sha256Digest& hash = layout_.manifest().hash();
    start.set_manifest_hash(std::string(hash.begin(), hash.end()));
    start.set_state_hash(replica_.StateHash());
    ASSERT_TRUE(rounds->WriteStart(start).ok());
  }

  // Writes the rounds; both members report their state, `liar` (if any) another one in round 2.
  void WriteRounds(const std::string& liar = "") {
    auto rounds =
        *server::RoundLog::Open(store_->rounds_dir(), &layout_, 0, server::Disk::Real(), &log_);
    WriteStart(rounds.get());
    for (uint64_t t = 0; t < kRounds; ++t) {
      testing::BuiltRound round =
          testing::BuildRound(layout_, RoundId(t), rounds->HashBefore(RoundId(t)));
      for (v1::Member& member : *round.header.mutable_members()) {
        member.set_state_hash(replica_.StateHash() + (t == 2 && member.name() == liar));
      }
      auto writer = *rounds->Begin(RoundId(t));
      for (uint32_t s = 0; s < layout_.segments(); ++s) {
        ASSERT_TRUE(writer.AddSegment(SegmentId(s), round.payloads[s]).ok());
      }
      ASSERT_TRUE(rounds->Commit(std::move(writer), round.header_bytes()).ok());
      ASSERT_TRUE(replica_.Apply(testing::Committed(layout_, round)).ok());
    }
  }

  void Damage(const std::string& path, size_t at) {
    std::string bytes = *ReadFile(path);
    bytes.at(at) ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }

  absl::StatusOr<Report> Replay() { return ReplayLog({.data_dir = data_dir()}, NoProgress); }

  const Layout layout_ = testing::SmallLayout();
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend();
  testing::ScratchFolder folder_;
  Log log_{LogLevel::kError};
  std::unique_ptr<server::RunStore> store_;  // keeps the lock, as a running aggregator does
  Replica replica_{&layout_, backend_.get(), TensorBuffer(layout_), RoundId(0), 0};
};

TEST_F(ReplayLogTest, GivesTheStateOfAReplicaAndCountsWhatMembersReported) {
  WriteRounds();
  const absl::StatusOr<Report> text = Replay();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr(absl::StrCat("run     ", store_->run()->run_id)));
  EXPECT_THAT(text->text, HasSubstr("rounds  4 of 10, "));
  EXPECT_THAT(text->text, HasSubstr(absl::StrCat("log     ", ToHex(replica_.log_hash()))));
  EXPECT_THAT(text->text, HasSubstr(absl::StrCat("state   ", ToHex(replica_.StateHash()))));
  EXPECT_THAT(text->text, HasSubstr("members 8 state hashes reported, 0 differ"));
}

// Without the oldest results it begins with the snapshot that the log continues.
TEST_F(ReplayLogTest, BeginsWithASnapshotWhenTheOldestResultsAreGone) {
  WriteRounds();
  auto rounds =
      *server::RoundLog::Open(store_->rounds_dir(), &layout_, 0, server::Disk::Real(), &log_);
  Replica early(&layout_, backend_.get(), TensorBuffer(layout_), RoundId(0),
                rounds->HashBefore(RoundId(0)));
  for (uint64_t t = 0; t < 2; ++t) {
    testing::BuiltRound round =
        testing::BuildRound(layout_, RoundId(t), rounds->HashBefore(RoundId(t)));
    round.header = *rounds->Header(RoundId(t));
    ASSERT_TRUE(early.Apply(testing::Committed(layout_, round)).ok());
  }
  ASSERT_TRUE(rounds->Prune(RoundId(2)).ok());
  EXPECT_EQ(Replay().status().code(), absl::StatusCode::kDataLoss) << "no snapshot yet";
  ASSERT_TRUE(WriteSnapshot(folder_.File("snapshot"), layout_, early.parameters(), {}).ok());
  const std::string bytes = *ReadFile(folder_.File("snapshot"));
  v1::SnapshotInfo info;
  info.set_round(2);
  info.set_size_bytes(bytes.size());
  info.set_sha256(server::DigestBytes(Sha256(bytes)));
  info.set_state_hash(early.StateHash());
  info.set_log_hash(rounds->HashBefore(RoundId(2)));
  ASSERT_TRUE(store_->snapshots()->AppendIncoming(info, 0, bytes).ok());
  ASSERT_TRUE(store_->snapshots()->Adopt(info).ok());
  const absl::StatusOr<Report> text = Replay();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr(", replayed from the snapshot before 2"));
  EXPECT_THAT(text->text, HasSubstr(absl::StrCat("state   ", ToHex(replica_.StateHash()))));
  EXPECT_THAT(text->text, HasSubstr("members 4 state hashes reported, 0 differ"));
}

TEST_F(ReplayLogTest, GivesInitialModelBeforeStart) {
  const absl::StatusOr<Report> text = Replay();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr("rounds  0 of 10"));
  EXPECT_THAT(text->text, HasSubstr(ToHex(replica_.StateHash())));
}

TEST_F(ReplayLogTest, NamesAMemberThatReportedAnotherState) {
  WriteRounds("bob");
  const absl::StatusOr<Report> report = Replay();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(report->text, HasSubstr("8 state hashes reported, 1 differ"));
  EXPECT_THAT(report->text, HasSubstr("round 2: bob reported "));
  EXPECT_THAT(report->text, HasSubstr(ToHex(replica_.StateHash())));
  EXPECT_EQ(report->json["different"], 1);
}

TEST_F(ReplayLogTest, NamesTheRecordWithADamagedPayload) {
  WriteRounds();
  Damage(RecordPath(1), 40);
  const absl::Status status = Replay().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(RecordPath(1)));
}

TEST_F(ReplayLogTest, NamesARecordThatIsMissing) {
  WriteRounds();
  std::filesystem::remove(RecordPath(2));
  const absl::Status status = Replay().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(RecordPath(2)));
}

TEST_F(ReplayLogTest, NamesADamagedInitialModel) {
  WriteRounds();
  const std::string path = data_dir() + "/snapshots/0.safetensors";
  Damage(path, ReadFile(path)->size() - 1);
  const absl::Status status = Replay().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST_F(ReplayLogTest, AsksForTheFolderOfARun) {
  EXPECT_EQ(ReplayLog({}, NoProgress).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status status = ReplayLog({.data_dir = folder_.path()}, NoProgress).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.path()));
}

}  // namespace
}  // namespace distro::tools
