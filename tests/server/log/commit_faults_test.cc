// Every operation of a commit fails, or is the last one before a kill: nothing is acknowledged that
// is not stored, no file keeps the final name, and the same bytes can be written again.
#include <errno.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/log_fixture.h"
#include "tests/testing/file_system_calls.h"

namespace distro::server {
namespace {

using testing::DiskCall;
using ::testing::HasSubstr;

constexpr char kFinalName[] = "0000000001.record";

class CommitFaultsTest : public LogFixture {
 protected:
  void SetUp() override {
    Fill(1);
    rounds_ = *Open();
    expected_hash_ = Xxh3(Next(*rounds_).header_bytes());
  }

  // Operations of a commit, from the temporary file to its removal.
  std::vector<DiskCall> CallsOfACommit() {
    testing::ScratchFolder folder;
    testing::FaultyDisk disk;
    auto log = *RoundLog::Open(folder.path(), &layout_, 0, &disk, &log_);
    EXPECT_TRUE(log->WriteStart(Start()).ok());
    const size_t before = disk.calls().size();
    EXPECT_TRUE(Write(log.get()).ok());
    const std::vector<DiskCall> calls = disk.calls();
    return {calls.begin() + before, calls.end()};
  }

  void ExpectNothingWasPublished() {
    EXPECT_EQ(rounds_->next_round(), RoundId(1));
    EXPECT_FALSE(std::filesystem::exists(Path(kFinalName)));
  }

  void ExpectARetryCommits() {
    const absl::Status status = Write(rounds_.get());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(rounds_->next_round(), RoundId(2));
    EXPECT_EQ(rounds_->HashBefore(RoundId(2)), expected_hash_);
    auto again = RoundLog::Open(Dir(), &layout_, 2, Disk::Real(), &log_);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again)->HashBefore(RoundId(2)), expected_hash_);
  }

  void StartAgain() {
    rounds_.reset();
    std::filesystem::remove_all(Dir());
    disk_.Heal();
    SetUp();
  }

  void ExpectThatEachOperationMayFail() {
    const std::vector<DiskCall> calls = CallsOfACommit();
    for (const int error_number : {ENOSPC, EROFS}) {
      for (const bool half_done : {false, true}) {
        for (int n = 0; n + 1 < static_cast<int>(calls.size()); ++n) {
          SCOPED_TRACE(absl::StrCat("operation ", n, ", ", DiskOperationName(calls[n].operation),
                                    ", errno ", error_number, half_done ? ", half done" : ""));
          disk_.Fail(
              {.error_number = error_number, .after = n, .times = 1, .half_done = half_done});
          const absl::Status status = Write(rounds_.get());
          const bool full = error_number == ENOSPC;
          EXPECT_EQ(status.code(),
                    full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable)
              << status;
          EXPECT_EQ(ReasonOf(status), "disk");
          EXPECT_EQ(FailedDiskOperation(status), calls[n].operation);
          EXPECT_THAT(std::string(status.message()), HasSubstr(Dir()));
          ExpectNothingWasPublished();
          ExpectARetryCommits();
          if (HasFailure()) return;
          StartAgain();
        }
      }
    }
  }

  std::unique_ptr<RoundLog> rounds_;
  uint64_t expected_hash_ = 0;
};

TEST_F(CommitFaultsTest, KeepsThisOrder) {
  std::vector<DiskOperation> operations;
  for (const DiskCall& call : CallsOfACommit()) operations.push_back(call.operation);
  EXPECT_EQ(operations, (std::vector<DiskOperation>{
                            DiskOperation::kCreate, DiskOperation::kWrite, DiskOperation::kWrite,
                            DiskOperation::kWrite, DiskOperation::kWrite, DiskOperation::kWrite,
                            DiskOperation::kFsync, DiskOperation::kLink,
                            DiskOperation::kFsyncFolder, DiskOperation::kUnlink}));
}

TEST_F(CommitFaultsTest, RetriesOperations) { ExpectThatEachOperationMayFail(); }

// Then the temporary file loses its name with the final one.
TEST_F(CommitFaultsTest, RetriesOperationsWithoutLinks) {
  testing::FileSystemCalls calls;
  calls.Fail("link", EPERM);
  ExpectThatEachOperationMayFail();
}

// The temporary file that cannot be removed is no harm: the next start does it.
TEST_F(CommitFaultsTest, ToleratesLeftTemporaryFile) {
  disk_.Fail({.operation = DiskOperation::kUnlink});
  disk_.Fail({.operation = DiskOperation::kFsync, .times = 1});
  EXPECT_FALSE(Write(rounds_.get()).ok());
  ASSERT_TRUE(Write(rounds_.get()).ok());
  EXPECT_EQ(FilesThatEndWith(".tmp"), 2);
  disk_.Heal();
  EXPECT_EQ((*Open())->next_round(), RoundId(2));
  EXPECT_EQ(FilesThatEndWith(".tmp"), 0);
}

// After a failed fsync the next one of the same file may succeed although the data is lost.
TEST_F(CommitFaultsTest, DiscardsFileOfFailedFsync) {
  disk_.Fail({.operation = DiskOperation::kFsync, .error_number = EIO, .times = 1});
  const size_t before = disk_.calls().size();
  ASSERT_FALSE(Write(rounds_.get()).ok());
  ExpectARetryCommits();
  std::vector<DiskOperation> operations;
  const std::vector<DiskCall> calls = disk_.calls();
  for (size_t i = before; i < calls.size(); ++i) {
    if (calls[i].operation != DiskOperation::kWrite) operations.push_back(calls[i].operation);
  }
  EXPECT_EQ(operations, (std::vector<DiskOperation>{
                            DiskOperation::kCreate, DiskOperation::kFsync, DiskOperation::kUnlink,
                            DiskOperation::kCreate, DiskOperation::kFsync, DiskOperation::kLink,
                            DiskOperation::kFsyncFolder, DiskOperation::kUnlink}));
}

// A caller that reports a failure once instead of at every attempt compares the text.
TEST_F(CommitFaultsTest, RepeatsMessageOfFailure) {
  disk_.Fail({.operation = DiskOperation::kWrite, .error_number = ENOSPC});
  const absl::Status first = Write(rounds_.get());
  EXPECT_THAT(std::string(first.message()), HasSubstr("write " + Path(kFinalName)));
  EXPECT_EQ(Write(rounds_.get()), first);
}

// The folder's fsync fails, and then so does taking the final name back: the record is there, but
// nobody was told.
TEST_F(CommitFaultsTest, RetriesToTakeFinalNameBack) {
  const auto fail = [&] {
    disk_.Fail({.operation = DiskOperation::kFsyncFolder, .error_number = EIO, .times = 1});
    disk_.Fail({.operation = DiskOperation::kUnlink, .error_number = EROFS});
  };
  fail();
  EXPECT_EQ(FailedDiskOperation(Write(rounds_.get())), DiskOperation::kFsyncFolder);
  EXPECT_EQ(rounds_->next_round(), RoundId(1));
  EXPECT_TRUE(std::filesystem::exists(Path(kFinalName)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(FailedDiskOperation(Write(rounds_.get())), DiskOperation::kUnlink);
    EXPECT_EQ(rounds_->next_round(), RoundId(1));
  }
  disk_.Heal();
  ExpectARetryCommits();
}

// Another process on the folder removes our temporary file when it starts, and writes one of its
// own.
TEST_F(CommitFaultsTest, NeverLinksFileOfOtherProcess) {
  auto writer = *rounds_->Begin(RoundId(1));
  const testing::BuiltRound round = Next(*rounds_);
  for (uint32_t i = 0; i < layout_.segments(); ++i) {
    ASSERT_TRUE(writer.AddSegment(SegmentId(i), round.payloads[i]).ok());
  }
  auto other = *RoundLog::Open(Dir(), &layout_, 0, Disk::Real(), &log_);
  auto others_writer = *other->Begin(RoundId(1));
  ASSERT_TRUE(others_writer.AddSegment(SegmentId(0), "unfinished").ok());
  EXPECT_FALSE(rounds_->Commit(std::move(writer), round.header_bytes()).ok());
  ExpectNothingWasPublished();
  ExpectARetryCommits();
}

TEST_F(CommitFaultsTest, KeepsForeignFinalFile) {
  auto other = RoundLog::Open(Dir(), &layout_, 0, Disk::Real(), &log_);
  auto writer = *rounds_->Begin(RoundId(1));
  const testing::BuiltRound round = Next(*rounds_);
  for (uint32_t i = 0; i < layout_.segments(); ++i) {
    ASSERT_TRUE(writer.AddSegment(SegmentId(i), round.payloads[i]).ok());
  }
  ASSERT_TRUE(Write(other->get()).ok());
  disk_.Fail({.operation = DiskOperation::kLink, .error_number = EIO, .times = 1});
  EXPECT_EQ(FailedDiskOperation(rounds_->Commit(std::move(writer), round.header_bytes())),
            DiskOperation::kLink);
  EXPECT_TRUE(std::filesystem::exists(Path(kFinalName)));
}

TEST_F(CommitFaultsTest, RetriesTheStart) {
  for (int n = 0; n < 6; ++n) {
    StartAgain();
    rounds_.reset();
    std::filesystem::remove_all(Dir());
    auto log = *Open();
    disk_.FailNth(n, EIO);
    const absl::Status status = log->WriteStart(Start());
    if (status.ok()) {
      EXPECT_EQ(n, 5) << "only the removal of the temporary file may fail unseen";
      continue;
    }
    EXPECT_EQ(ReasonOf(status), "disk");
    EXPECT_FALSE(log->has_start());
    EXPECT_FALSE(std::filesystem::exists(Path("start.record")));
    EXPECT_TRUE(log->WriteStart(Start()).ok());
  }
}

// The files after a kill before each operation.
TEST_F(CommitFaultsTest, LeavesRoundOrNothingAfterKill) {
  std::vector<std::string> copies;
  std::vector<DiskOperation> operations;
  disk_.SetHook([&](const DiskCall& call, uint64_t n) {
    copies.push_back(folder_.File(absl::StrCat("killed", n)));
    operations.push_back(call.operation);
    std::filesystem::copy(Dir(), copies.back());
  });
  ASSERT_TRUE(Write(rounds_.get()).ok());
  disk_.SetHook(nullptr);
  ASSERT_EQ(copies.size(), CallsOfACommit().size());
  bool linked = false;
  for (size_t i = 0; i < copies.size(); ++i) {
    SCOPED_TRACE(DiskOperationName(operations[i]));
    auto log = RoundLog::Open(copies[i], &layout_, 2, Disk::Real(), &log_);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->next_round(), RoundId(linked ? 2 : 1));
    if (!linked) {
      ASSERT_TRUE(Write(log->get()).ok());
    }
    EXPECT_EQ((*log)->HashBefore(RoundId(2)), expected_hash_);
    linked = linked || operations[i] == DiskOperation::kLink;
  }
}

// A round that a killed process linked, but did not make durable, is made durable before it is
// announced.
TEST_F(CommitFaultsTest, SyncsFoundNamesAtStart) {
  rounds_.reset();
  const int before = disk_.count(DiskOperation::kFsyncFolder);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(disk_.count(DiskOperation::kFsyncFolder), before + 1);
  disk_.Fail({.operation = DiskOperation::kFsyncFolder, .error_number = EIO});
  EXPECT_EQ(FailedDiskOperation(Open().status()), DiskOperation::kFsyncFolder);
}

}  // namespace
}  // namespace distro::server
