// The data folder of a run restored from an archive: its sources, refusals, and that log and store
// continue from it.
#include "server/log/restored_run.h"

#include <filesystem>
#include <functional>
#include <utility>

#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/model/checkpoint/snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/read_run.h"
#include "server/log/round_log.h"
#include "server/log/run_store.h"
#include "server/log/snapshot_check.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"
#include "tests/testing/small_run.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRound = 7;    // of the copy
constexpr uint64_t kHeaders = 3;  // rounds 4 to 6
constexpr uint64_t kHashBefore = 99;

class RestoredRunTest : public ::testing::Test {
 protected:
  RestoredRunTest() {
    restored_.snapshot_path = folder_.File("copy");
    TensorBuffer parameters(layout_);
    parameters.tensor(0)[0] = 0.5f;
    EXPECT_TRUE(WriteSnapshot(restored_.snapshot_path, layout_, parameters, {}).ok());
    v1::StoredRun& run = *restored_.archive.mutable_run();
    run.set_run_id("small-0001");
    *run.mutable_config() = testing::SmallConfig();
    run.set_model_config_json("{}");
    run.set_created_sha256(std::string(32, 'c'));
    restored_.archive.set_data_fingerprint("data");
    restored_.epoch = 41;
    v1::SnapshotInfo& snapshot = restored_.snapshot;
    const std::string bytes = *ReadFile(restored_.snapshot_path);
    snapshot.set_size_bytes(bytes.size());
    snapshot.set_sha256(DigestBytes(Sha256(bytes)));
    snapshot.set_state_hash(*CheckedStateHash(restored_.snapshot_path, layout_));
    SetRounds(kRound - kHeaders, kRound);
  }
  // The copy is of before round `end`, and the archive has the headers from `first` on.
  void SetRounds(uint64_t first, uint64_t end) {
    restored_.archive.clear_headers();
    uint64_t hash = kHashBefore;
    for (uint64_t round = first; round < end; ++round) {
      const std::string header =
          testing::BuildRound(layout_, RoundId(round), hash).header.SerializeAsString();
      hash = Xxh3(header);
      restored_.archive.add_headers(header);
    }
    restored_.snapshot.set_round(end);
    restored_.snapshot.set_log_hash(hash);
  }
  absl::Status Write() { return WriteRestoredRun(folder_.File("data"), restored_, &disk_); }
  void ExpectRefused(const std::function<void(RestoredRun&)>& change, const std::string& message) {
    RestoredRun changed = restored_;
    change(changed);
    const absl::Status status = WriteRestoredRun(folder_.File("data"), changed, &disk_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder_.File("data"))) << "nothing is written";
  }

  const Layout layout_ = testing::SmallLayout();
  testing::ScratchFolder folder_;
  testing::FaultyDisk disk_;
  testing::FakeClock clock_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  RestoredRun restored_;
};

TEST_F(RestoredRunTest, ContinuesLog) {
  const absl::Status written = Write();
  ASSERT_TRUE(written.ok()) << written;
  const auto log = RoundLog::Open(folder_.File("data/rounds"), &layout_, 2, &disk_, &log_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->begin(), RoundId(kRound - kHeaders));
  EXPECT_EQ((*log)->next_round(), RoundId(kRound));
  EXPECT_EQ((*log)->first_round(), RoundId(kRound)) << "no results before it";
  EXPECT_EQ((*log)->HashBefore(RoundId(kRound)), restored_.snapshot.log_hash());
  EXPECT_EQ((*log)->HashBefore((*log)->begin()), kHashBefore);
  EXPECT_EQ((*log)->start().data_fingerprint(), "data");
  EXPECT_EQ((*log)->Header(RoundId(kRound - 1))->round(), kRound - 1);
  const testing::BuiltRound next =
      testing::BuildRound(layout_, RoundId(kRound), restored_.snapshot.log_hash());
  auto writer = (*log)->Begin(RoundId(kRound));
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (uint32_t s = 0; s < layout_.segments(); ++s)
    ASSERT_TRUE(writer->AddSegment(SegmentId(s), next.payloads[s]).ok());
  ASSERT_TRUE((*log)->Commit(*std::move(writer), next.header.SerializeAsString()).ok());
  EXPECT_TRUE((*log)->Prune(RoundId(kRound + 1)).ok());
  EXPECT_TRUE((*log)->pruned(RoundId(kRound)));
  const auto again = RoundLog::Open(folder_.File("data/rounds"), &layout_, 2, &disk_, &log_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->next_round(), RoundId(kRound + 1));
}

// The archiver was there from the first round on: round 0 follows the start of the run that is
// gone, which the new one's start has other bytes than.
TEST_F(RestoredRunTest, KeepsHeadersFromRoundZero) {
  SetRounds(0, 3);
  ASSERT_EQ(Write(), absl::OkStatus());
  const auto log = RoundLog::Open(folder_.File("data/rounds"), &layout_, 2, &disk_, &log_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->begin(), RoundId(0));
  EXPECT_EQ((*log)->HashBefore(RoundId(0)), kHashBefore);
  EXPECT_EQ((*log)->first_round(), RoundId(3)) << "no results before it";
  EXPECT_EQ((*log)->next_round(), RoundId(3));
  EXPECT_EQ((*log)->HashBefore(RoundId(3)), restored_.snapshot.log_hash());
  EXPECT_EQ((*log)->Header(RoundId(0))->round(), 0u);
  const auto run = ReadRun(folder_.File("data"), SnapshotCheck::kSha256);
  EXPECT_TRUE(run.ok()) << run.status();
}

TEST_F(RestoredRunTest, KeepsRunAndFirstSnapshot) {
  restored_.companions = {{"tokenizer.json", "of the run"}};
  *restored_.archive.mutable_run()->mutable_companions() = DescribeCompanions(restored_.companions);
  ASSERT_TRUE(Write().ok());
  const auto store = RunStore::Open(folder_.File("data"), &disk_, &clock_, &log_);
  ASSERT_TRUE(store.ok()) << store.status();
  const RunIdentity& run = *(*store)->run();
  EXPECT_EQ(run.run_id, "small-0001");
  EXPECT_EQ(run.created_sha256(), std::string(32, 'c'));
  EXPECT_GT((*store)->epoch().value(), 41u);
  ASSERT_EQ((*store)->snapshots()->List().size(), 1u);
  EXPECT_EQ((*store)->snapshots()->List()[0].round(), kRound);
  EXPECT_TRUE(
      std::filesystem::exists(*(*store)->snapshots()->PathOf(run.initial_snapshot.sha256())));
  EXPECT_EQ(*ReadFile(folder_.File("data/companions/tokenizer.json")), "of the run");
  Sha256Digest created;
  created.fill('c');
  EXPECT_TRUE((*store)->CheckSameRun(testing::SmallConfig(), "{}", created, {}).ok())
      << "--run and --model of its creation";
  created.fill('d');
  EXPECT_EQ((*store)->CheckSameRun(testing::SmallConfig(), "{}", created, {}).code(),
            absl::StatusCode::kAlreadyExists);
  v1::SnapshotInfo older = run.initial_snapshot;
  older.set_round(kRound - 1);
  EXPECT_EQ((*store)->snapshots()->IncomingBytes(older).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(RestoredRunTest, RefusesMismatch) {
  ExpectRefused([](RestoredRun& r) { r.archive.mutable_headers()->RemoveLast(); },
                "does not continue the one before");
  ExpectRefused([](RestoredRun& r) { r.archive.mutable_headers()->DeleteSubrange(0, 2); },
                "at least 2 are needed");
  ExpectRefused([](RestoredRun& r) { r.archive.mutable_headers()->DeleteSubrange(1, 1); },
                "does not continue");
  ExpectRefused([](RestoredRun& r) { r.archive.mutable_headers(1)->pop_back(); }, "header");
  ExpectRefused([](RestoredRun& r) { r.snapshot.set_state_hash(1); }, "state hash");
  ExpectRefused([](RestoredRun& r) { r.snapshot.set_log_hash(1); }, "the copy follows");
  ExpectRefused([](RestoredRun& r) { r.archive.clear_data_fingerprint(); }, "which data");
  ExpectRefused([](RestoredRun& r) { r.archive.mutable_run()->mutable_config()->set_rounds(0); },
                "rounds");
}

TEST_F(RestoredRunTest, RefusesUsedFolder) {
  ASSERT_TRUE(CreateFolders(folder_.File("data")).ok());
  ASSERT_TRUE(Write().ok()) << "an empty one is fine";
  EXPECT_EQ(Write().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RestoredRunTest, UntilAllIsWrittenThereIsNoRun) {
  disk_.Fail({.path_part = "run.pb"});
  EXPECT_FALSE(Write().ok());
  EXPECT_EQ(ReadRun(folder_.File("data"), SnapshotCheck::kHead).status().code(),
            absl::StatusCode::kDataLoss)
      << "rounds without a run are told from an empty folder";
}

}  // namespace
}  // namespace distro::server
