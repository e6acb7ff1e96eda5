#include "common/base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/disk_space.h"
#include "common/base/log.h"
#include "common/base/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/file_system_calls.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro {
namespace {

class FileTest : public ::testing::Test {
 protected:
  // Whether docs/troubleshooting.md has the message.
  bool OnThePage(absl::string_view message) const {
    const std::string words = absl::StrReplaceAll(message, {{path_, "FILE"}});
    return testing::TroubleshootingPageHas(words, "HOST:PORT", folder_.File(""));
  }

  testing::ScratchFolder folder_;
  // As FileSystemCalls reports them.
  const std::string root_ = std::filesystem::path(folder_.path()).lexically_normal();
  const std::string path_ = root_ + "/f";
};

TEST_F(FileTest, PiecesAreWrittenOneAfterTheOther) {
  const absl::Status status = WritePiecesAtomically(path_, {"one", "", "two"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(path_), "onetwo");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(FileTest, WritingReplacesTheWholeFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "a longer text").ok());
  ASSERT_TRUE(WriteFileAtomically(path_, "short").ok());
  EXPECT_EQ(*ReadFile(path_), "short");
}

TEST_F(FileTest, RefusesAtOnceWhatTheDiskHasNoRoomFor) {
  ASSERT_TRUE(WriteFileAtomically(path_ + ".tmp", "left by a crash").ok());
  const std::string large(16 << 20, 'x');
  const std::vector<absl::string_view> pieces(SpaceOf(root_)->bytes / large.size() + 1, large);
  const absl::Status status = WritePiecesAtomically(path_, pieces);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), ::testing::HasSubstr(" bytes, and its disk has "));
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(FileTest, ReadingStopsAtTheLimit) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(100000, 'x')).ok());
  EXPECT_EQ(ReadFile(path_, 100000)->size(), 100000u);
  EXPECT_EQ(ReadFile(path_, 99999).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileTest, ErrorsNameThePath) {
  const std::string absent = folder_.File("absent/f");
  for (const absl::Status& status : {ReadFile(absent).status(), MappedFile::Open(absent).status(),
                                     WriteFileAtomically(absent, "x"), SyncFolder(absent)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(absent));
  }
  EXPECT_EQ(MappedFile::Open(folder_.path()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileTest, MapsEmptyFilesAndMoves) {
  ASSERT_TRUE(WriteFileAtomically(path_, "bytes").ok());
  MappedFile file = *MappedFile::Open(path_);
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes(), "bytes");
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(MappedFile::Open(path_)->bytes(), "");
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(folder_.File("fifo").c_str(), 0600), 0);
  ASSERT_EQ(mknod(folder_.File("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  ASSERT_TRUE(CreateFolders(folder_.File("folder")).ok());
  const std::pair<std::string, std::string> kinds[] = {
      {folder_.File("fifo"), "a named pipe (FIFO)"},
      {folder_.File("socket"), "a socket"},
      {folder_.File("folder"), "a folder"},
      {"/dev/zero", "a device"}};
  for (const auto& [path, kind] : kinds) {
    EXPECT_TRUE(OnThePage(kind));
    for (const absl::Status& status :
         {ReadFile(path).status(), ReadTextFile(path).status(), MappedFile::Open(path).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_EQ(status.message(), path + ": is " + kind + ", not a regular file");
    }
  }
}

TEST_F(FileTest, ReadsThroughLink) {
  ASSERT_TRUE(WriteFileAtomically(path_, "bytes").ok());
  ASSERT_EQ(symlink(path_.c_str(), folder_.File("link").c_str()), 0);
  EXPECT_EQ(ReadFile(folder_.File("link")).value_or(""), "bytes");
  EXPECT_EQ(MappedFile::Open(folder_.File("link"))->bytes(), "bytes");
}

TEST_F(FileTest, TextIsReadAsItComesFromElsewhere) {
  for (const char* text : {"one\ntwo \n", "\xEF\xBB\xBFone\ntwo \n", "one\r\ntwo \r\n",
                           "\xEF\xBB\xBFone\r\ntwo \r\n"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    EXPECT_EQ(ReadTextFile(path_).value_or(""), "one\ntwo \n");
  }
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(ReadTextFile(path_).value_or("-"), "");
}

TEST_F(FileTest, TextInUtf16IsRefusedByName) {
  using namespace std::string_literals;
  for (const std::string& text : {"\xFF\xFEo\0n\0"s, "\xFE\xFF\0o\0n"s, "o\0n\0"s, "\0o\0n"s}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    const absl::Status status = ReadTextFile(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(OnThePage(status.message())) << status;
  }
}

TEST_F(FileTest, SetsModeBeforeContent) {
  testing::FileSystemCalls calls;
  mode_t seen = 0;
  calls.SetHook([&](const std::string& call) {
    struct stat about = {};
    if (call == "fsync " + path_ + ".tmp" && stat((path_ + ".tmp").c_str(), &about) == 0)
      seen = about.st_mode & 07777;
  });
  ASSERT_TRUE(WriteFileAtomically(path_, "secret", 0600).ok());
  EXPECT_EQ(seen, 0600u);
}

TEST_F(FileTest, AbortsOvertakenWriter) {
  testing::FileSystemCalls calls;
  bool inside = false;
  calls.SetHook([&](const std::string& call) {
    if (inside || call != "fsync " + path_ + ".tmp") return;
    inside = true;
    EXPECT_TRUE(WriteFileAtomically(path_, "whole").ok());
  });
  EXPECT_EQ(WriteFileAtomically(path_, "late").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReadFile(path_).value_or(""), "whole");
}

TEST_F(FileTest, SyncsParentOfNewFolder) {
  testing::FileSystemCalls calls;
  ASSERT_TRUE(CreateFolders(folder_.File("a/b/")).ok());
  EXPECT_THAT(calls.calls(),
              ::testing::ElementsAre("mkdir " + root_ + "/a", "fsync_folder " + root_,
                                     "mkdir " + root_ + "/a/b", "fsync_folder " + root_ + "/a"));
  ASSERT_TRUE(CreateFolders(folder_.File("a/b")).ok());
  EXPECT_EQ(calls.calls().size(), 4u) << "it was there";
  ASSERT_TRUE(WriteFileAtomically(path_, "in the way").ok());
  EXPECT_FALSE(CreateFolders(path_ + "/c").ok());
}

TEST_F(FileTest, RenamesFolderDurablyToRemoveIt) {
  ASSERT_TRUE(CreateFolders(root_ + "/round-1.removed/left by a crash").ok());
  ASSERT_TRUE(CreateFolders(root_ + "/round-1").ok());
  ASSERT_TRUE(WriteFileAtomically(root_ + "/round-1/f", "bytes").ok());
  testing::FileSystemCalls calls;
  calls.SetHook([&](const std::string& call) {
    if (call != "fsync_folder " + root_) return;
    EXPECT_FALSE(std::filesystem::exists(root_ + "/round-1"));
    EXPECT_TRUE(std::filesystem::exists(root_ + "/round-1.removed/f"));
  });
  ASSERT_TRUE(RemoveFolder(root_ + "/round-1").ok());
  EXPECT_THAT(calls.calls(), ::testing::ElementsAre("rename " + root_ + "/round-1.removed",
                                                    "fsync_folder " + root_));
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(FileTest, WarnsWhereFoldersCannotSync) {
  testing::FileSystemCalls calls;
  std::string lines;
  Log log(LogLevel::kInfo, Clock::Real(),
          [&](absl::string_view line) { absl::StrAppend(&lines, line); });
  WarnIfNamesMayBeLost(folder_.path(), &log);
  EXPECT_EQ(lines, "");
  calls.Fail("fsync_folder", EINVAL);
  EXPECT_TRUE(WriteFileAtomically(path_, "bytes").ok());
  WarnIfNamesMayBeLost(folder_.path(), &log);
  EXPECT_THAT(lines, ::testing::HasSubstr("cannot make names durable"));
  const std::string event =
      lines.substr(lines.find("the file"), lines.find(" folder=") - lines.find("the file"));
  EXPECT_TRUE(OnThePage(event)) << event;
  calls.Fail("fsync_folder", EIO);
  EXPECT_FALSE(WriteFileAtomically(path_, "bytes").ok());
}

}  // namespace
}  // namespace distro
