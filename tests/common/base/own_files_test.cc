// What a program writes in its own folders: never through a link, never waiting for a FIFO.
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/line_file.h"
#include "common/base/part_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/file_system_calls.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class OwnFilesTest : public ::testing::Test {
 protected:
  // Each with the name that it opens.
  using Opener = std::pair<std::string, std::function<absl::Status()>>;
  std::vector<Opener> Openers() const {
    const std::string path = folder_.File("f");
    return {{path, [path] { return LineFile::Open(path, 1000).status(); }},
            {path + ".part", [path] { return PartFile::Open(path, 1000).status(); }},
            {folder_.File("lock"),
             [folder = folder_.path()] { return FolderLock::Take(folder).status(); }}};
  }

  // Whether docs/troubleshooting.md has the message.
  bool OnThePage(const absl::Status& status, const std::string& path) const {
    const std::string words = absl::StrReplaceAll(status.message(), {{path, "FILE"}});
    return testing::TroubleshootingPageHas(words, "HOST:PORT", folder_.File(""));
  }

  testing::ScratchFolder folder_;
};

TEST_F(OwnFilesTest, RefusesLink) {
  const std::string victim = folder_.File("victim");
  for (const std::string& target : {victim, folder_.File("not there")}) {
    for (const auto& [path, open] : Openers()) {
      ASSERT_TRUE(WriteFileAtomically(victim, "a torn line").ok());
      ASSERT_EQ(symlink(target.c_str(), path.c_str()), 0);
      const absl::Status status = open();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), StartsWith(path + ": is a symbolic link"));
      EXPECT_TRUE(OnThePage(status, path)) << status;
      EXPECT_EQ(*ReadFile(victim), "a torn line");
      EXPECT_FALSE(std::filesystem::exists(folder_.File("not there")));
      ASSERT_EQ(unlink(path.c_str()), 0);
    }
  }
}

TEST_F(OwnFilesTest, ReplacesLinkAtTemporaryFile) {
  const std::string victim = folder_.File("victim"), path = folder_.File("worker.state");
  ASSERT_TRUE(WriteFileAtomically(victim, "theirs").ok());
  ASSERT_EQ(symlink(victim.c_str(), (path + ".tmp").c_str()), 0);
  ASSERT_EQ(symlink(victim.c_str(), path.c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(path, "ours").ok());
  EXPECT_EQ(*ReadFile(victim), "theirs");
  EXPECT_EQ(*ReadFile(path), "ours");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

TEST_F(OwnFilesTest, RefusesFifo) {
  for (const auto& [path, open] : Openers()) {
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(open().message(), path + ": is a named pipe (FIFO), not a regular file");
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_TRUE(CreateFolders(path).ok());
    EXPECT_EQ(open().message(), path + ": is a folder, not a regular file");
    ASSERT_EQ(rmdir(path.c_str()), 0);
  }
}

TEST_F(OwnFilesTest, SaysWhereLocksAreMissing) {
  testing::FileSystemCalls calls;
  for (const int error : {ENOSYS, EOPNOTSUPP, EINVAL, ENOLCK}) {
    calls.Fail("flock", error);
    const absl::Status status = FolderLock::Take(folder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the file system there has no locks"));
    if (error != ENOSYS) continue;
    EXPECT_TRUE(OnThePage(status, folder_.File("lock"))) << status;
  }
}

TEST_F(OwnFilesTest, ContinuesPart) {
  ASSERT_TRUE(PartFile::Open(folder_.File("f"), 6)->Append("abc").ok());
  auto part = PartFile::Open(folder_.File("f"), 6);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->size(), 3u);
  ASSERT_TRUE(part->Append("def").ok());
  const Sha256Digest digest = Sha256("abcdef");
  ASSERT_TRUE(part->Finish({reinterpret_cast<const char*>(digest.data()), digest.size()}).ok());
  EXPECT_EQ(*ReadFile(folder_.File("f")), "abcdef");
}

}  // namespace
}  // namespace distro
