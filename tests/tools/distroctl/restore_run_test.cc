// `distroctl run restore` from folders in the state that an archiver leaves.
#include "tools/distroctl/restore_run.h"

#include <filesystem>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/read_run.h"
#include "server/log/round_log.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"
#include "tests/testing/small_run.h"
#include "tests/tools/archiver/replica_fixture.h"
#include "tools/archiver/archive_folder.h"
#include "tools/archiver/archive_log.h"

namespace distro::tools {
namespace {

using ::testing::HasSubstr;

class RestoreRunTest : public ::testing::Test {
 protected:
  RestoreRunTest() {
    v1::StoredRun& run = *log_.mutable_run();
    run.set_run_id("small-0001");
    *run.mutable_config() = testing::SmallConfig();
    run.set_model_config_json("{}");
    run.set_created_sha256(std::string(32, 'c'));
    log_.set_data_fingerprint("data");
  }
  // An archiver that followed the run from its first round on, and ended.
  void SaveCopy(uint64_t round) {
    while (small_.replica.next_round().value() < round) {
      const CommittedRound next =
          Committed(small_.layout, testing::BuildRound(small_.layout, small_.replica.next_round(),
                                                       small_.replica.log_hash()));
      AddHeader(next, &log_);
      ASSERT_EQ(small_.replica.Apply(next), absl::OkStatus());
    }
    const auto folder = ArchiveFolder::Open(options_.archive);
    ASSERT_TRUE(folder.ok()) << folder.status();
    ArchiveState state{.run_id = "small-0001", .epoch = 7, .snapshot = {}};
    ASSERT_EQ((*folder)->Save(small_.replica, log_, &state), absl::OkStatus());
  }
  void ExpectRefused(absl::StatusCode code, const std::string& message) {
    const absl::StatusOr<Report> report = RestoreRun(options_);
    EXPECT_EQ(report.status().code(), code) << report.status();
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(options_.data_dir)) << "nothing is written";
  }

  testing::ScratchFolder scratch_;
  testing::SmallReplica small_;
  v1::StoredArchive log_;
  const RestoreRunOptions options_{.archive = scratch_.File("archive"),
                                   .data_dir = scratch_.File("data")};
};

TEST_F(RestoreRunTest, ContinuesRunFromRoundZero) {
  SaveCopy(3);
  ASSERT_EQ(log_.headers_size(), 3) << "rounds 0 to 2";
  const absl::StatusOr<Report> report = RestoreRun(options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->text, HasSubstr("restored small-0001"));
  EXPECT_THAT(report->text, HasSubstr("continues at round 3"));
  EXPECT_EQ(report->json["round"], 3);
  const auto run = server::ReadRun(options_.data_dir, server::SnapshotCheck::kSha256);
  EXPECT_TRUE(run.ok()) << run.status();
  testing::FaultyDisk disk;
  Log log(LogLevel::kError, Clock::Real(), [](absl::string_view) {});
  const auto rounds =
      server::RoundLog::Open(options_.data_dir + "/rounds", &small_.layout, 2, &disk, &log);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  EXPECT_EQ((*rounds)->begin(), RoundId(0));
  EXPECT_EQ((*rounds)->next_round(), RoundId(3));
  EXPECT_EQ((*rounds)->HashBefore(RoundId(3)), small_.replica.log_hash())
      << "what an archiver's subscription continues from";
}

TEST_F(RestoreRunTest, RefusesWhileArchiverWorks) {
  SaveCopy(3);
  const auto archiver = ArchiveFolder::Open(options_.archive);
  ASSERT_TRUE(archiver.ok());
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "an archiver works on it");
}

TEST_F(RestoreRunTest, RefusesCopyOfOneRound) {
  SaveCopy(1);
  ExpectRefused(absl::StatusCode::kInvalidArgument, "at least 2 are needed");
}

TEST_F(RestoreRunTest, WithoutItsLogACopyIsParametersOnly) {
  SaveCopy(3);
  std::filesystem::remove(options_.archive + "/log-3.pb");
  ExpectRefused(absl::StatusCode::kInvalidArgument, "has parameters only");
}

TEST_F(RestoreRunTest, DamageIsNotRestored) {
  SaveCopy(3);
  const std::string snapshot = options_.archive + "/snapshot-3.safetensors";
  std::string bytes = *ReadFile(snapshot);
  bytes.back() ^= 1;
  ASSERT_EQ(WriteFileAtomically(snapshot, bytes), absl::OkStatus());
  ExpectRefused(absl::StatusCode::kDataLoss, "snapshot-3.safetensors");
}

}  // namespace
}  // namespace distro::tools
