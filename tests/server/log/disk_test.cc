#include "server/log/disk.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/file_system_calls.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro::server {
namespace {

using ::testing::HasSubstr;

class DiskTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_.File(name); }

  void WriteNew(const std::string& name, const std::string& bytes) {
    const absl::StatusOr<int> fd = disk_->Create(File(name));
    ASSERT_TRUE(fd.ok()) << fd.status();
    EXPECT_TRUE(disk_->Write(*fd, File(name), 0, bytes).ok());
    EXPECT_TRUE(disk_->Fsync(*fd, File(name)).ok());
    close(*fd);
  }

  testing::ScratchFolder folder_;
  Disk* const disk_ = Disk::Real();
};

TEST_F(DiskTest, DoesWhatItSays) {
  EXPECT_TRUE(disk_->CreateFolder(File("a/b")).ok());
  EXPECT_TRUE(disk_->CreateFolder(File("a/b")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(File("a/b")));
  WriteNew("a/one", "1234");
  EXPECT_TRUE(disk_->Link(File("a/one"), File("a/two")).ok());
  EXPECT_TRUE(disk_->Rename(File("a/one"), File("a/b/three")).ok());
  EXPECT_TRUE(disk_->FsyncFolder(File("a")).ok());
  EXPECT_EQ(*ReadFile(File("a/two")), "1234");
  EXPECT_EQ(*ReadFile(File("a/b/three")), "1234");
  EXPECT_FALSE(std::filesystem::exists(File("a/one")));
  EXPECT_TRUE(disk_->Unlink(File("a/two")).ok());
  EXPECT_FALSE(std::filesystem::exists(File("a/two")));
}

TEST_F(DiskTest, AnswersAboutPathsWithoutFault) {
  WriteNew("one", "1");
  WriteNew("two", "2");
  for (const absl::Status& status :
       {disk_->Create(File("one")).status(), disk_->Link(File("one"), File("two"))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
    EXPECT_EQ(ReasonOf(status), "");
  }
  EXPECT_EQ(disk_->Unlink(File("none")).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(RemoveIfThere(disk_, File("none")).ok());
}

TEST_F(DiskTest, WithoutHardLinksANewNameReplacesNothingEither) {
  testing::FileSystemCalls calls;
  for (const int error : {EPERM, EOPNOTSUPP, ENOSYS}) {
    calls.Fail("link", error);
    WriteNew("from", "new");
    WriteNew("taken", "old");
    EXPECT_EQ(disk_->Link(File("from"), File("taken")).code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(*ReadFile(File("taken")), "old");
    ASSERT_TRUE(disk_->Link(File("from"), File("to")).ok());
    EXPECT_EQ(*ReadFile(File("to")), "new");
    for (const char* name : {"taken", "to"}) EXPECT_TRUE(disk_->Unlink(File(name)).ok());
  }
}

TEST_F(DiskTest, SaysWhereNewNamesAreMissing) {
  testing::FileSystemCalls calls;
  calls.Fail("link", EPERM);
  calls.Fail("renameat2", EINVAL);
  WriteNew("from", "new");
  const absl::Status status = disk_->Link(File("from"), File("to"));
  EXPECT_EQ(FailedDiskOperation(status), DiskOperation::kLink);
  EXPECT_TRUE(testing::TroubleshootingPageHas(
      absl::StrReplaceAll(status.message(), {{File("to"), "FILE"}}), "HOST:PORT", folder_.File("")))
      << status;
  EXPECT_EQ(*ReadFile(File("from")), "new");
}

TEST_F(DiskTest, SyncsParentOfNewFolder) {
  testing::FileSystemCalls calls;
  ASSERT_TRUE(disk_->CreateFolder(File("a/b")).ok());
  EXPECT_EQ(std::ranges::count_if(
                calls.calls(), [](const std::string& call) { return call.starts_with("fsync_"); }),
            2);
  calls.Fail("fsync_folder", EIO);
  EXPECT_EQ(FailedDiskOperation(disk_->CreateFolder(File("c"))), DiskOperation::kCreateFolder);
}

TEST_F(DiskTest, ToleratesFoldersThatCannotSync) {
  testing::FileSystemCalls calls;
  calls.Fail("fsync_folder", EINVAL);
  EXPECT_TRUE(WriteAtomically(disk_, File("f"), "bytes").ok());
  calls.Fail("fsync_folder", EIO);
  EXPECT_EQ(FailedDiskOperation(WriteAtomically(disk_, File("f"), "more")),
            DiskOperation::kFsyncFolder);
}

TEST_F(DiskTest, NamesOperationAndPathOfError) {
  for (const int full : {ENOSPC, EDQUOT}) {
    const absl::Status status = DiskError(DiskOperation::kFsyncFolder, full, "/some/where");
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(status), "disk");
    EXPECT_EQ(FailedDiskOperation(status), DiskOperation::kFsyncFolder);
    EXPECT_THAT(std::string(status.message()), HasSubstr("fsync_folder /some/where: "));
  }
  // None is FailedPrecondition or DataLoss: those end the process.
  for (const int other : {EIO, EROFS, EACCES, EMFILE, ENFILE, EFBIG, ENOTDIR, 9999}) {
    EXPECT_EQ(DiskError(DiskOperation::kWrite, other, "p").code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(FailedDiskOperation(absl::UnavailableError("peer")), std::nullopt);
}

TEST_F(DiskTest, WritesAtomically) {
  ASSERT_TRUE(WriteAtomically(disk_, File("f"), "old").ok());
  WriteNew("f.tmp", "of a process that was killed, longer than what comes");
  ASSERT_TRUE(WriteAtomically(disk_, File("f"), "new").ok());
  EXPECT_EQ(*ReadFile(File("f")), "new");
  EXPECT_FALSE(std::filesystem::exists(File("f.tmp")));
}

TEST_F(DiskTest, KeepsOldOrNewBytes) {
  testing::FaultyDisk disk;
  for (const bool half_done : {false, true}) {
    for (int n = 0; n < 6; ++n) {
      ASSERT_TRUE(WriteAtomically(&disk, File("f"), "old").ok());
      disk.Fail({.error_number = EIO, .after = n, .times = 1, .half_done = half_done});
      const absl::Status status = WriteAtomically(&disk, File("f"), "new");
      EXPECT_EQ(ReasonOf(status), "disk") << n;
      const std::string left = *ReadFile(File("f"));
      EXPECT_TRUE(left == "old" || left == "new") << left;
      EXPECT_TRUE(n >= 4 || left == "old") << n;
      // A file whose creation was not seen stays until the next write.
      const bool stays = half_done && n == 1;
      EXPECT_EQ(std::filesystem::exists(File("f.tmp")), stays) << n;
      ASSERT_TRUE(WriteAtomically(&disk, File("f"), "newer").ok());
    }
  }
}

TEST_F(DiskTest, FailsAsTestSays) {
  testing::FaultyDisk disk;
  disk.Fail({.operation = DiskOperation::kCreate,
             .path_part = "bad",
             .error_number = ENOSPC,
             .after = 1,
             .times = 1});
  EXPECT_TRUE(WriteAtomically(&disk, File("good"), "1").ok());
  EXPECT_TRUE(WriteAtomically(&disk, File("bad"), "1").ok());
  EXPECT_EQ(WriteAtomically(&disk, File("bad"), "2").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(WriteAtomically(&disk, File("bad"), "3").ok());
  EXPECT_EQ(disk.count(DiskOperation::kCreate), 4);
  disk.Fail({.operation = DiskOperation::kWrite, .half_done = true});
  const int fd = *disk.Create(File("half"));
  EXPECT_FALSE(disk.Write(fd, File("half"), 0, "1234").ok());
  close(fd);
  EXPECT_EQ(*ReadFile(File("half")), "12");
}

}  // namespace
}  // namespace distro::server
