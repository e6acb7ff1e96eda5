// The headers of pruned rounds in packs: few files, however many rounds there were; each round once
// after a kill or a loss of power; rewritten only until a pack is full.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/record_format.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using testing::DiskCall;
using ::testing::HasSubstr;

class PackTest : public LogFixture {
 protected:
  // A log of so many rounds, with their hashes.
  void Begin(uint64_t rounds) {
    Fill(0);
    rounds_ = *Open();
    hashes_ = {rounds_->HashBefore(RoundId(0))};
    WriteUpTo(rounds);
  }
  void WriteUpTo(uint64_t rounds) {
    while (rounds_->next_round() < RoundId(rounds)) {
      ASSERT_TRUE(Write(rounds_.get()).ok());
      hashes_.push_back(rounds_->HashBefore(rounds_->next_round()));
    }
  }
  void Prune(uint64_t first_kept) {
    const absl::Status status = rounds_->Prune(RoundId(first_kept));
    ASSERT_TRUE(status.ok()) << status;
  }

  // Every round is there once, with its header.
  void ExpectWhole(const RoundLog& log) {
    ASSERT_EQ(log.next_round().value() + 1, hashes_.size());
    for (uint64_t t = 0; t + 1 < hashes_.size(); ++t) {
      ASSERT_EQ(log.HashBefore(RoundId(t)), hashes_[t]);
      const auto header = log.Header(RoundId(t));
      ASSERT_TRUE(header.ok()) << header.status();
      ASSERT_EQ(header->round(), t);
    }
  }

  // Appends pruned records as versions before packs left them.
  void WritePrunedAsBefore(uint64_t rounds) {
    for (uint64_t t = 0; t < rounds; ++t) {
      const std::string header =
          testing::BuildRound(layout_, RoundId(t), hashes_.back()).header_bytes();
      std::ofstream(Path(RecordName(RoundId(t))), std::ios::binary)
          << EncodeRecordPrefix(RecordKind::kPruned)
          << EncodeRecordTail(RecordKind::kPruned, RoundId(t), {}, header);
      hashes_.push_back(Xxh3(header));
    }
  }
  // Replaces a record as versions before packs did.
  void PruneAsBefore(uint64_t round) {
    const std::string path = Path(RecordName(RoundId(round)));
    const std::string header = (*RecordReader::Open(path, RecordKind::kRound))->header_bytes();
    auto file = RecordWriter::Create({Disk::Real(), Dir(), path + ".tmp", path},
                                     RecordKind::kPruned, RoundId(round), 0);
    ASSERT_TRUE(file->Replace(header).ok());
  }

  std::unique_ptr<RoundLog> rounds_;
  std::vector<uint64_t> hashes_;
};

TEST_F(PackTest, GrowsWithPrunes) {
  Begin(1);
  for (uint64_t t = 8; t <= 32; t += 4) {
    WriteUpTo(t);
    Prune(t - 3);
    EXPECT_EQ(rounds_->files(), 1 + 1 + 3) << "the start, the pack, three rounds";
    EXPECT_EQ(rounds_->files(), FilesThatEndWith(".record"));
    ExpectWhole(*rounds_);
  }
  auto again = Open();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->files(), rounds_->files());
  EXPECT_EQ((*again)->bytes(), rounds_->bytes());
  ExpectWhole(**again);
}

TEST_F(PackTest, ManyRoundsAreFewFilesAndAFullPackIsNotWrittenAgain) {
  constexpr uint64_t kPruned = 2 * kPackRounds + 3;
  Begin(0);
  WritePrunedAsBefore(kPruned);
  rounds_ = *Open();
  EXPECT_EQ(rounds_->files(), 1 + kPruned);
  WriteUpTo(kPruned + 4);
  Prune(kPruned);
  EXPECT_EQ(rounds_->files(), 1 + 3 + 4) << "the start, three packs, four rounds";
  ExpectWhole(*rounds_);
  const size_t before = disk_.calls().size();
  Prune(kPruned + 2);
  const std::vector<DiskCall> calls = disk_.calls();
  EXPECT_GT(calls.size(), before);
  for (size_t i = before; i < calls.size(); ++i) {
    for (const uint64_t full : {uint64_t{0}, kPackRounds})
      EXPECT_THAT(calls[i].path, Not(HasSubstr(RecordName(RoundId(full)))));
  }
  ExpectWhole(**Open());
}

TEST_F(PackTest, TakesRecordsOfOlderVersion) {
  Begin(6);
  for (uint64_t t = 0; t < 4; ++t) PruneAsBefore(t);
  rounds_ = *Open();
  EXPECT_EQ(rounds_->first_round(), RoundId(4));
  EXPECT_EQ(rounds_->files(), 7);
  Prune(1);  // nothing is dropped
  EXPECT_EQ(rounds_->files(), 4);
  ExpectWhole(*rounds_);
  ExpectWhole(**Open());
}

// After the pack is durable, any of the names that were removed may be there still.
TEST_F(PackTest, SurvivesReturnOfRecords) {
  Begin(6);
  Prune(2);
  std::vector<std::string> names, bytes;
  for (uint64_t t = 2; t < 5; ++t) {
    names.push_back(Path(RecordName(RoundId(t))));
    bytes.push_back(*ReadFile(names.back()));
  }
  Prune(5);
  for (int some = 0; some < 8; ++some) {
    SCOPED_TRACE(some);
    for (int i = 0; i < 3; ++i) {
      if ((some >> i & 1) != 0) {
        ASSERT_TRUE(WriteFileAtomically(names[i], bytes[i]).ok());
      }
    }
    const auto looks = RoundLog::OpenReadOnly(Dir(), &layout_, 2);
    ASSERT_TRUE(looks.ok()) << looks.status();
    ExpectWhole(**looks);
    rounds_ = *Open();
    ExpectWhole(*rounds_);
    EXPECT_EQ(rounds_->first_round(), RoundId(5));
    EXPECT_EQ(FilesThatEndWith(".record"), 3) << "the start, the pack, round 5";
  }
}

// A kill after the rename: the pack's name may not be durable yet.
TEST_F(PackTest, IsDurableBeforeRecordsAreRemoved) {
  Begin(6);
  disk_.Fail({.operation = DiskOperation::kFsyncFolder});
  EXPECT_EQ(FailedDiskOperation(rounds_->Prune(RoundId(4))), DiskOperation::kFsyncFolder);
  EXPECT_EQ(FilesThatEndWith(".record"), 7) << "none is removed";
  EXPECT_EQ(FailedDiskOperation(Open().status()), DiskOperation::kFsyncFolder);
  EXPECT_EQ(FilesThatEndWith(".record"), 7);
  disk_.Heal();
  rounds_ = *Open();
  EXPECT_EQ(FilesThatEndWith(".record"), 4);
  ExpectWhole(*rounds_);
}

TEST_F(PackTest, RetriesRemovalOfRecord) {
  Begin(6);
  disk_.Fail({.operation = DiskOperation::kUnlink, .path_part = RecordName(RoundId(2))});
  EXPECT_EQ(FailedDiskOperation(rounds_->Prune(RoundId(4))), DiskOperation::kUnlink);
  ExpectWhole(*rounds_);
  disk_.Heal();
  Prune(4);
  EXPECT_EQ(FilesThatEndWith(".record"), 4);
}

// `distroctl log` on a folder in use.
TEST_F(PackTest, IsFollowedByReader) {
  Begin(8);
  const auto looks = RoundLog::OpenReadOnly(Dir(), &layout_, 0);
  Prune(3);
  ExpectWhole(**looks);
  Prune(6);
  ExpectWhole(**looks);
}

TEST_F(PackTest, TellsMissingRecord) {
  Begin(8);
  const std::string name = Path(RecordName(RoundId(3)));
  std::filesystem::rename(name, folder_.File("away"));
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = rounds_->Prune(RoundId(6));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_EQ(rounds_->files(), 6) << "start, pack 0 to 2, the missing one, pack 4 to 5, two";
  }
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::rename(folder_.File("away"), name);
  ExpectWhole(*rounds_);
  rounds_ = *Open();
  WriteUpTo(9);
  Prune(7);
  ExpectWhole(*rounds_);
  rounds_ = *Open();
  ExpectWhole(*rounds_);
  EXPECT_EQ(FilesThatEndWith(".record"), 5) << "start, two packs, two rounds";
}

}  // namespace
}  // namespace distro::server
