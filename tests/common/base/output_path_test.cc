#include "common/base/output_path.h"

#include <unistd.h>

#include <filesystem>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

class OutputTest : public ::testing::Test {
 protected:
  void ExpectRefused(const absl::Status& status, const std::string& words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
  void ExpectEmpty(const std::string& folder) {
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << folder;
  }

  testing::ScratchFolder scratch_;
};

TEST_F(OutputTest, NewFolderIsTriedAndNotLeft) {
  EXPECT_TRUE(TryOutputFolder(scratch_.File("a/b")).ok());
  ExpectEmpty(scratch_.File("a"));
}

TEST_F(OutputTest, FolderStaysAsItWas) {
  ASSERT_TRUE(CreateFolders(scratch_.File("a")).ok());
  EXPECT_TRUE(TryOutputFolder(scratch_.File("a/")).ok());
  ExpectEmpty(scratch_.File("a"));
}

TEST_F(OutputTest, FileStaysAsItWas) {
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("summary"), "old").ok());
  EXPECT_TRUE(TryOutputFile(scratch_.File("summary")).ok());
  EXPECT_TRUE(TryOutputFile(scratch_.File("other")).ok());
  EXPECT_EQ(*ReadFile(scratch_.File("summary")), "old");
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("other")));
}

TEST_F(OutputTest, FileIsNoFolder) {
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("afile"), "").ok());
  ExpectRefused(TryOutputFolder(scratch_.File("afile")), "afile: is a file");
  ExpectRefused(TryOutputFolder(scratch_.File("afile/below")), "below: cannot be written");
  ExpectRefused(TryOutputFile(scratch_.File("afile/below")), "there is no folder");
}

TEST_F(OutputTest, FolderIsNoFile) { ExpectRefused(TryOutputFile(scratch_.path()), "is a folder"); }

TEST_F(OutputTest, FolderOfAFileIsNotCreated) {
  ExpectRefused(TryOutputFile(scratch_.File("gone/summary")), "create it, or give another name");
}

TEST_F(OutputTest, DeviceWouldBeReplaced) {
  ExpectRefused(TryOutputFile("/dev/null"), "no regular file");
}

TEST_F(OutputTest, FolderThatTakesNoFiles) {
  ExpectRefused(TryOutputFolder("/proc/self"), "create a file in /proc/self");
  ExpectRefused(TryOutputFile("/proc/self/summary"), "create a file in /proc/self");
  ExpectRefused(TryOutputFolder("/proc/made"), "create folder /proc/made");
}

}  // namespace
}  // namespace distro
