#include "common/base/folder.h"

#include <sys/stat.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

TEST(FolderTest, NamesInAFolder) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("a"), "1").ok());
  ASSERT_TRUE(CreateFolders(folder.File("b")).ok());
  EXPECT_THAT(*NamesIn(folder.path()), ::testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(NamesIn(folder.File("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST(FolderTest, ExistsNeverThrows) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("a"), "1").ok());
  EXPECT_TRUE(Exists(folder.File("a")));
  EXPECT_FALSE(Exists(folder.File("b")));
  EXPECT_FALSE(Exists(folder.File("a/b")));
  EXPECT_TRUE(Exists(folder.File(std::string(300, 'x'))));  // too long a name: not known
}

class TemporaryFolderTest : public ::testing::Test {
 protected:
  TemporaryFolderTest() { Unset(); }
  ~TemporaryFolderTest() override { Unset(); }  // the next scratch folder is made there
  static void Unset() {
    for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) unsetenv(name);
  }

  testing::ScratchFolder folder_;
};

TEST_F(TemporaryFolderTest, IsMadeInTheFolderOfTheVariable) {
  setenv("TMPDIR", folder_.path().c_str(), 1);
  const absl::StatusOr<std::string> made = MakeTemporaryFolder("name");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, HasSubstr(folder_.File("name-")));
  struct stat info;
  ASSERT_EQ(stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(TemporaryFolderTest, IgnoresEmptyVariable) {
  setenv("TMPDIR", "", 1);
  setenv("TMP", folder_.path().c_str(), 1);
  EXPECT_THAT(*MakeTemporaryFolder("name"), HasSubstr(folder_.File("name-")));
}

TEST_F(TemporaryFolderTest, NamesVariableOfMissingFolder) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("file"), "1").ok());
  for (const char* name : {"gone", "file"}) {
    setenv("TMPDIR", folder_.File(name).c_str(), 1);
    const absl::Status status = MakeTemporaryFolder("name").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("TMPDIR: make a temporary folder in " + folder_.File(name)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("set TMPDIR to a folder to write in"));
  }
}

}  // namespace
}  // namespace distro
