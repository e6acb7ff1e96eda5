// Every operation of adopting a snapshot fails, or is the last one before a kill: what is listed is
// whole.
#include <errno.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/snapshot_fixture.h"

namespace distro::server {
namespace {

using ::testing::ElementsAre;
using SnapshotFaultsTest = SnapshotFixture;
using testing::DiskCall;

TEST_F(SnapshotFaultsTest, LeavesWholeSnapshotsAfterKill) {
  Store(10);
  Store(20);
  const Uploaded upload = Make(30);
  ASSERT_TRUE(Send(upload).ok());
  std::vector<std::string> copies;
  disk_.SetHook([&](const DiskCall&, uint64_t n) {
    copies.push_back(folder_.File(absl::StrCat("killed", n)));
    std::filesystem::copy(Data(), copies.back(), std::filesystem::copy_options::recursive);
  });
  ASSERT_TRUE(snapshots_->Adopt(upload.info).ok());
  disk_.SetHook(nullptr);
  ASSERT_GE(copies.size(), 12);
  bool stored = false;
  for (const std::string& copy : copies) {
    SCOPED_TRACE(copy);
    auto again = OpenAgain(copy);
    const std::vector<uint64_t> rounds = RoundsOf(*again);
    EXPECT_TRUE(rounds == (std::vector<uint64_t>{30, 20, 0}) ||
                (!stored && rounds == (std::vector<uint64_t>{20, 10, 0})));
    stored = stored || rounds.front() == 30;
    ExpectListedFilesAreWhole(*again);
    EXPECT_TRUE(again->Adopt(upload.info).ok());
    EXPECT_THAT(RoundsOf(*again), ElementsAre(30, 20, 0));
  }
  EXPECT_TRUE(stored);
}

TEST_F(SnapshotFaultsTest, LeavesAdoptRepeatable) {
  Store(10);
  Store(20);
  const Uploaded upload = Make(30);
  for (const bool half_done : {false, true}) {
    for (int n = 0;; ++n) {
      SCOPED_TRACE(n);
      ASSERT_TRUE(Send(upload).ok());
      disk_.Fail({.error_number = EIO, .after = n, .times = 1, .half_done = half_done});
      const absl::Status status = snapshots_->Adopt(upload.info);
      disk_.Heal();
      if (!status.ok()) {
        EXPECT_EQ(ReasonOf(status), "disk") << status;
        EXPECT_THAT(Rounds(), ElementsAre(20, 10, 0));
        ExpectListedFilesAreWhole(*snapshots_);
        continue;
      }
      EXPECT_THAT(Rounds(), ElementsAre(30, 20, 0));
      ExpectListedFilesAreWhole(*snapshots_);
      ExpectListedFilesAreWhole(*OpenAgain(Data()));
      break;
    }
    store_.reset();
    std::filesystem::remove_all(Data());
    SetUp();
    Store(10);
    Store(20);
  }
}

// After the page cache lost the bytes, the next fsync succeeds.
TEST_F(SnapshotFaultsTest, DropsUploadOfFailedFsync) {
  const Uploaded upload = Make(10);
  ASSERT_TRUE(Send(upload).ok());
  disk_.Fail({.operation = DiskOperation::kFsync, .error_number = EIO, .times = 1});
  EXPECT_EQ(FailedDiskOperation(snapshots_->Adopt(upload.info)), DiskOperation::kFsync);
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 0);
}

TEST_F(SnapshotFaultsTest, PausesUploadWhileDiskIsFull) {
  const Uploaded upload = Make(10);
  ASSERT_TRUE(snapshots_->AppendIncoming(upload.info, 0, upload.bytes.substr(0, 100)).ok());
  disk_.Fail({.operation = DiskOperation::kWrite, .error_number = ENOSPC, .half_done = true});
  const absl::Status status =
      snapshots_->AppendIncoming(upload.info, 100, upload.bytes.substr(100, 100));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "disk");
  EXPECT_EQ(*snapshots_->IncomingBytes(upload.info), 150) << "a part of the frame";
  disk_.Heal();
  ASSERT_TRUE(Send(upload).ok());
  EXPECT_TRUE(snapshots_->Adopt(upload.info).ok());
}

}  // namespace
}  // namespace distro::server
