#include "common/base/disk_space.h"

#include <cerrno>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

TEST(DiskSpaceTest, SaysWhatAFileSystemHas) {
  const testing::ScratchFolder folder;
  const auto space = SpaceOf(folder.path());
  ASSERT_TRUE(space.has_value());
  EXPECT_GT(space->bytes, 0);
  EXPECT_LE(space->free_bytes, space->bytes);
  EXPECT_LE(space->free_files, space->files);
  EXPECT_FALSE(SpaceOf(folder.File("none")).has_value());
}

TEST(DiskSpaceTest, RefusesAFileThatIsLargerThanTheDisk) {
  const testing::ScratchFolder folder;
  EXPECT_TRUE(CheckRoom(folder.File("file"), 1).ok());
  const absl::Status status = CheckRoom(folder.File("file"), uint64_t{1} << 60);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("needs 1152921504606846976 bytes"));
  EXPECT_TRUE(CheckRoom("/none/file", uint64_t{1} << 60).ok()) << "writing it says what is wrong";
}

// Of one without inodes: full_disk_test.
TEST(DiskSpaceTest, NamesInodesOnlyWhereNoneIsLeft) {
  const testing::ScratchFolder folder;
  for (const int error : {EIO, EROFS, ENOSPC})
    EXPECT_EQ(DiskErrorText(error, folder.File("file")), std::strerror(error));
  EXPECT_EQ(DiskErrorText(ENOSPC, "file"), std::strerror(ENOSPC));
  EXPECT_EQ(DiskErrorText(ENOSPC, "/none/file"), std::strerror(ENOSPC));
}

}  // namespace
}  // namespace distro
