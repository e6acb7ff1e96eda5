#include "server/log/epoch_file.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/log_fixture.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSecond = uint64_t{1} << kEpochRandomBits;
// What FakeClock begins with.
constexpr uint64_t kNow = 1'700'000'000 * kSecond;

class EpochFileTest : public LogFixture {
 protected:
  absl::StatusOr<EpochId> Raise(bool has_run = true) {
    return RaiseEpoch(folder_.path(), has_run, random_, clock_, &disk_, &lines_log_);
  }
  void WriteEpoch(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File("epoch"), text).ok());
  }
  std::string Stored() const { return *ReadFile(folder_.File("epoch")); }

  // A log whose newest record is of that epoch.
  void WriteRecordOfEpoch(uint64_t epoch) {
    auto log = *Open();
    if (!log->has_start()) {
      ASSERT_TRUE(log->WriteStart(Start()).ok());
    }
    testing::BuiltRound round = Next(*log);
    round.header.set_epoch(epoch);
    auto writer = *log->Begin(log->next_round());
    for (uint32_t i = 0; i < layout_.segments(); ++i) {
      ASSERT_TRUE(writer.AddSegment(SegmentId(i), round.payloads[i]).ok());
    }
    ASSERT_TRUE(log->Commit(std::move(writer), round.header_bytes()).ok());
  }

  uint64_t random_ = 0;  // of the next starts
  std::vector<std::string> lines_;
  Log lines_log_{LogLevel::kWarning, Clock::Real(),
                 [this](absl::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(EpochFileTest, IsTheTimeAtTheFirstStart) {
  EXPECT_EQ(*Raise(/*has_run=*/false), EpochId(kNow + 1));
  EXPECT_EQ(Stored(), absl::StrCat(kNow + 1, "\n"));
}

TEST_F(EpochFileTest, IsHigherAtEveryStartAlsoWhenNoTimePasses) {
  for (uint64_t i = 1; i < 4; ++i) EXPECT_EQ(*Raise(false), EpochId(kNow + i));
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(*Raise(), EpochId(kNow + 100 * kSecond + 1));
}

// The previous start does not determine it: that may have been on another machine.
TEST_F(EpochFileTest, DiffersFromCopyOfSameSecond) {
  ASSERT_TRUE(Raise(false).ok());
  const std::string copy = Stored();
  for (const absl::Duration later : {absl::ZeroDuration(), absl::Seconds(30)}) {
    clock_.Advance(later);
    random_ = 5;
    const EpochId one = *Raise();
    WriteEpoch(copy);
    random_ = 6;
    EXPECT_EQ(*Raise(), EpochId(one.value() + 1));
    WriteEpoch(copy);
  }
}

TEST_F(EpochFileTest, OnlyTheRandomBitsAreDrawn) {
  random_ = UINT64_MAX;
  EXPECT_EQ(*Raise(false), EpochId(kNow + kSecond));
  EXPECT_LT(Raise()->value(), uint64_t{1} << 53);
}

TEST_F(EpochFileTest, ContinuesFromSeconds) {
  WriteEpoch("1700000000\n");
  EXPECT_EQ(*Raise(), EpochId(kNow + 1));
}

TEST_F(EpochFileTest, RisesThoughClockWentBack) {
  WriteEpoch(absl::StrCat(kNow + 5000 * kSecond, "\n"));
  EXPECT_EQ(*Raise(), EpochId(kNow + 5000 * kSecond + 1));
}

// The reason for the calendar: a copy does not know the last epoch of the folder that it replaces.
TEST_F(EpochFileTest, RisesAboveReplacedFolder) {
  ASSERT_TRUE(Raise(false).ok());
  const std::string copy = Stored();
  EpochId highest;
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(30));
    random_ = kSecond - 1;
    highest = *Raise();
  }
  WriteEpoch(copy);
  clock_.Advance(absl::Seconds(30));
  random_ = 0;
  EXPECT_GT(*Raise(), highest);
}

TEST_F(EpochFileTest, RisesAboveRecords) {
  WriteRecordOfEpoch(kNow + 70);
  WriteEpoch("41\n");
  EXPECT_EQ(*Raise(), EpochId(kNow + 71));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("epoch file is older than the log")));
  lines_.clear();
  EXPECT_EQ(*Raise(), EpochId(kNow + 72));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(EpochFileTest, FollowsNewestRecord) {
  WriteRecordOfEpoch(kNow + 70);
  WriteRecordOfEpoch(kNow + 80);
  WriteEpoch("41\n");
  EXPECT_EQ(*Raise(), EpochId(kNow + 81));
}

TEST_F(EpochFileTest, FollowsNewestRecordInPack) {
  WriteRecordOfEpoch(kNow + 70);
  WriteRecordOfEpoch(kNow + 80);
  ASSERT_TRUE((*Open())->Prune(RoundId(2)).ok());
  WriteEpoch("41\n");
  EXPECT_EQ(*Raise(), EpochId(kNow + 81));
}

TEST_F(EpochFileTest, LookingAtItChangesNothing) {
  ASSERT_TRUE(Raise(false).ok());
  const std::string before = Stored();
  EXPECT_TRUE(CheckEpochFile(folder_.path()).ok());
  EXPECT_EQ(Stored(), before);
  std::filesystem::remove(folder_.File("epoch"));
  EXPECT_EQ(CheckEpochFile(folder_.path()).code(), absl::StatusCode::kDataLoss);
}

// The message of a missing file asks for a number: an editor of Windows writes it so.
TEST_F(EpochFileTest, ReadsFileOfWindowsEditor) {
  WriteEpoch(absl::StrCat("\xEF\xBB\xBF", kNow + 5000 * kSecond, "\r\n"));
  EXPECT_EQ(*Raise(), EpochId(kNow + 5000 * kSecond + 1));
}

TEST_F(EpochFileTest, RefusesAFileThatIsNotANumber) {
  for (const std::string text :
       {"", "0\n", "x\n", "-1\n", "1", "99999999999999999999\n", "18446744073709551615\n",
        "9223372036854775808\n", " 1\n", "1\n\n"}) {
    WriteEpoch(text);
    const absl::Status status = Raise().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(folder_.File("epoch") + ": is missing"));
  }
  WriteEpoch(std::string(100, '1'));
  EXPECT_EQ(Raise().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(EpochFileTest, IsRequiredWithRun) {
  EXPECT_EQ(Raise(/*has_run=*/true).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(EpochFileTest, IsNotRaisedWhenItCannotBeStored) {
  ASSERT_TRUE(Raise(false).ok());
  const std::string before = Stored();
  for (const DiskOperation operation :
       {DiskOperation::kCreate, DiskOperation::kWrite, DiskOperation::kFsync,
        DiskOperation::kRename, DiskOperation::kFsyncFolder}) {
    disk_.Fail({.operation = operation, .times = 1});
    EXPECT_EQ(FailedDiskOperation(Raise().status()), operation);
    if (operation != DiskOperation::kFsyncFolder) {
      EXPECT_EQ(Stored(), before);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.File("epoch.tmp")));
  }
  EXPECT_GT(Raise()->value(), kNow);
}

}  // namespace
}  // namespace distro::server
