// log ls, log show and log verify on a folder that an aggregator holds.
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/run_store.h"
#include "server/log/snapshot_check.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tools/distroctl/log_verify.h"
#include "tools/distroctl/stored_log.h"

namespace distro::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kRounds = 5;

void NoProgress(absl::string_view) {}

class LogCommandsTest : public ::testing::Test {
 protected:
  LogCommandsTest() {
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
    rounds_ =
        *server::RoundLog::Open(store_->rounds_dir(), &layout_, 0, server::Disk::Real(), &log_);
    WriteRounds();
  }

  void WriteRounds() {
    v1::StartHeader start;
    start.set_run_id(store_->run()->run_id);
    const Sha256Digest& hash = layout_.manifest().hash();
    start.set_manifest_hash(std::string(hash.begin(), hash.end()));
    EXPECT_TRUE(rounds_->WriteStart(start).ok());
    for (uint64_t t = 0; t < kRounds; ++t) {
      testing::BuiltRound round =
          testing::BuildRound(layout_, RoundId(t), rounds_->HashBefore(RoundId(t)), EpochId(7));
      round.header.set_reason(absl::StrCat("all in, round ", t));
      if (t == 3) {  // bob is late in every segment
        for (v1::CommittedSegment& segment : *round.header.mutable_segments()) {
          segment.set_included("\1");
        }
        round.header.mutable_members(1)->set_state(v1::MEMBER_STATE_LATE);
        round.header.mutable_members(1)->set_state_reason("missed a\ndeadline");
      }
      auto writer = *rounds_->Begin(RoundId(t));
      for (uint32_t s = 0; s < layout_.segments(); ++s) {
        EXPECT_TRUE(writer.AddSegment(SegmentId(s), round.payloads[s]).ok());
      }
      EXPECT_TRUE(rounds_->Commit(std::move(writer), round.header_bytes()).ok());
    }
  }

  std::string data_dir() const { return folder_.File("data"); }
  std::string RecordPath(uint64_t round) const {
    return absl::StrCat(store_->rounds_dir(), "/000000000", round, ".record");
  }
  absl::StatusOr<Report> Verify() { return VerifyLog({.data_dir = data_dir()}, NoProgress); }

  void Damage(const std::string& path, size_t at) {
    std::string bytes = *ReadFile(path);
    bytes.at(at) ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }

  void ExpectDamage(const std::vector<std::string>& parts) {
    const absl::Status status = Verify().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
  }

  const Layout layout_ = testing::SmallLayout();
  testing::ScratchFolder folder_;
  Log log_{LogLevel::kError};
  std::unique_ptr<server::RunStore> store_;  // keeps the lock, as a running aggregator does
  std::unique_ptr<server::RoundLog> rounds_;
};

TEST_F(LogCommandsTest, LsHasALineForEachRound) {
  const absl::StatusOr<Report> text = ListLog({.data_dir = data_dir()});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(text->text, '\n');
  ASSERT_THAT(lines, SizeIs(1 + kRounds));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("ROUND"), HasSubstr("INCLUDED"), HasSubstr("HASH")));
  uint64_t bytes = 0;
  for (const auto& payload :
       testing::BuildRound(layout_, RoundId(3), rounds_->HashBefore(RoundId(3))).payloads) {
    bytes += payload.size();
  }
  const std::vector<std::string> words = absl::StrSplit(lines[4], ' ', absl::SkipEmpty());
  EXPECT_EQ(words, (std::vector<std::string>{"3", "7", "2", "1", absl::StrCat(bytes), "kept",
                                             ToHex(rounds_->HashBefore(RoundId(4))), "all", "in,",
                                             "round", "3"}));
  EXPECT_EQ(text->json["rounds"][2]["included"], 2);
  EXPECT_EQ(text->json["rounds"][3]["payload_bytes"], bytes);
}

TEST_F(LogCommandsTest, LsFromAndToAndPruned) {
  ASSERT_TRUE(rounds_->Prune(RoundId(2)).ok());
  const absl::StatusOr<Report> text = ListLog({.data_dir = data_dir(), .from = 1, .to = 3});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(text->text, '\n');
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("round 1"), HasSubstr("pruned")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("round 2"), HasSubstr("kept")));
  EXPECT_THAT(ListLog({.data_dir = data_dir(), .from = 99})->text, Not(HasSubstr("\n")));
  EXPECT_EQ(ListLog({.data_dir = data_dir(), .from = 3, .to = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LogCommandsTest, ShowTellsARound) {
  const absl::StatusOr<Report> text = ShowRound({.data_dir = data_dir(), .round = 3});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr("round       3\n"));
  EXPECT_THAT(text->text, HasSubstr("epoch       7\n"));
  EXPECT_THAT(text->text, HasSubstr("reason      all in, round 3\n"));
  EXPECT_THAT(text->text, HasSubstr("hash        " + ToHex(rounds_->HashBefore(RoundId(4)))));
  EXPECT_THAT(text->text, HasSubstr("predecessor " + ToHex(rounds_->HashBefore(RoundId(3)))));
  EXPECT_THAT(text->text, HasSubstr("eta 0.25, eta*lambda 0.0625"));
  EXPECT_THAT(text->text, HasSubstr("K 4"));
  EXPECT_THAT(text->text, HasSubstr("missed a\\ndeadline")) << "a reason stays on its line";
  EXPECT_THAT(text->text, Not(HasSubstr("pruned")));
}

TEST_F(LogCommandsTest, ShowWithoutARoundTellsTheNewest) {
  ASSERT_TRUE(rounds_->Prune(RoundId(kRounds)).ok());
  const absl::StatusOr<Report> text = ShowRound({.data_dir = data_dir(), .round = std::nullopt});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr("round       4\n"));
  EXPECT_THAT(text->text, HasSubstr(", pruned\n"));
  const absl::Status status = ShowRound({.data_dir = data_dir(), .round = kRounds}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("which has 5 rounds"));
}

TEST_F(LogCommandsTest, VerifyFindsNoDamage) {
  const absl::StatusOr<Report> text = Verify();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr("rounds    5, results kept from round 0 on, "));
  EXPECT_THAT(text->text, HasSubstr(ToHex(rounds_->HashBefore(RoundId(kRounds)))));
  EXPECT_THAT(text->text, HasSubstr("no damage"));
  ASSERT_TRUE(rounds_->Prune(RoundId(2)).ok());
  EXPECT_THAT(Verify()->text, HasSubstr("results kept from round 2 on"));
}

TEST_F(LogCommandsTest, VerifyNamesEveryDamagedPayload) {
  Damage(RecordPath(1), 20);
  Damage(RecordPath(4), 20);
  ExpectDamage({"2 damaged", RecordPath(1) + ": the checksum of segment 0",
                RecordPath(4) + ": the checksum of segment 0"});
}

TEST_F(LogCommandsTest, VerifyNamesADamagedHeaderAndAMissingFile) {
  Damage(RecordPath(2), std::filesystem::file_size(RecordPath(2)) - 60);
  ExpectDamage({RecordPath(2), "header's checksum"});
  std::filesystem::remove(RecordPath(2));
  ExpectDamage({RecordPath(2), "is missing"});
}

TEST_F(LogCommandsTest, VerifyLooksAtTheOtherFilesToo) {
  ASSERT_TRUE(store_->admission()->Write({}).ok());
  ASSERT_TRUE(Verify().ok());
  Damage(data_dir() + "/admission.pb", 9);
  ExpectDamage({data_dir() + "/admission.pb: "});
  ASSERT_TRUE(store_->admission()->Write({}).ok());
  Damage(data_dir() + "/snapshots/0.safetensors", 200);
  ExpectDamage({data_dir() + "/snapshots/0.safetensors: ", "SHA-256"});
}

TEST_F(LogCommandsTest, VerifyLooksAtTheEpoch) {
  for (const std::string text : {"", "0\n", "7", "seven\n"}) {
    ASSERT_TRUE(WriteFileAtomically(data_dir() + "/epoch", text).ok());
    ExpectDamage({"1 damaged", data_dir() + "/epoch: is missing or not a number"});
  }
  std::filesystem::remove(data_dir() + "/epoch");
  ExpectDamage({data_dir() + "/epoch: is missing or not a number"});
}

TEST_F(LogCommandsTest, VerifyReadsTheLaterSnapshots) {
  const std::string initial = store_->run()->initial_snapshot_path;
  v1::SnapshotInfo info = store_->run()->initial_snapshot;
  TensorBuffer parameters(layout_);
  parameters.tensor(0)[0] = 1.0f;
  ASSERT_TRUE(WriteCheckpointFolder(folder_.File("later"), "{}", layout_, parameters).ok());
  const auto prepared = *PrepareInitialSnapshot(folder_.File("later"), folder_.File("file"));
  info.set_round(3);
  info.set_sha256(server::DigestBytes(prepared.sha256));
  info.set_state_hash(*server::CheckedStateHash(folder_.File("file"), layout_));
  const std::string bytes = *ReadFile(folder_.File("file"));
  ASSERT_TRUE(store_->snapshots()->AppendIncoming(info, 0, bytes).ok());
  ASSERT_TRUE(store_->snapshots()->Adopt(info).ok());
  EXPECT_THAT(Verify()->text, HasSubstr("the initial one and 1 later"));
  Damage(data_dir() + "/snapshots/3.safetensors", bytes.size() - 1);
  ExpectDamage({data_dir() + "/snapshots/3.safetensors: its SHA-256"});
}

TEST_F(LogCommandsTest, ChangesNothing) {
  const auto contents = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data_dir())) {
      files[entry.path()] = entry.is_directory() ? "" : *ReadFile(entry.path());
    }
    return files;
  };
  std::filesystem::copy_file(RecordPath(0), store_->rounds_dir() + "/open.tmp");
  const auto before = contents();
  EXPECT_TRUE(Verify().ok());
  EXPECT_TRUE(ListLog({.data_dir = data_dir()}).ok());
  EXPECT_TRUE(ShowRound({.data_dir = data_dir(), .round = 0}).ok());
  EXPECT_EQ(contents(), before);
}

TEST_F(LogCommandsTest, NamesFolderWithoutRun) {
  const auto expect = [](const absl::Status& status, absl::StatusCode code) {
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--data_dir: "));
  };
  for (const std::string& dir : {folder_.File("none"), folder_.File("model")}) {
    expect(ListLog({.data_dir = dir}).status(), absl::StatusCode::kNotFound);
    expect(ShowRound({.data_dir = dir, .round = 0}).status(), absl::StatusCode::kNotFound);
    expect(VerifyLog({.data_dir = dir}, NoProgress).status(), absl::StatusCode::kNotFound);
  }
  expect(ListLog({}).status(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::tools
