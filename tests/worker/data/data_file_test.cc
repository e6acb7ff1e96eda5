// What happens to a file while a worker trains on it.
#include "worker/data/data_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"
#include "worker/data/token_file.h"

namespace distro::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DataFileTest : public ::testing::Test {
 protected:
  DataFileTest() { Write("abcdef"); }
  void Write(absl::string_view bytes) { EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok()); }
  // Writes over bytes of the file that is there, which takes another time of change.
  void WriteOver(absl::string_view bytes) {
    const int fd = open(path_.c_str(), O_WRONLY);
    EXPECT_EQ(pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    close(fd);
    fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(1));
  }
  void ExpectChanged(const absl::Status& status, absl::string_view words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(ReasonOf(status), "data_changed");
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ": was written to"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(words)));
  }
  static absl::StatusOr<std::string> Read(const DataFile& file, uint64_t offset, size_t size) {
    std::string bytes(size, '\0');
    const absl::Status status = file.Read(offset, absl::MakeSpan(bytes));
    if (!status.ok()) return status;
    return bytes;
  }

  const testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("a.txt");
};

TEST_F(DataFileTest, ReadsFromAnyPlace) {
  const auto file = DataFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 6u);
  EXPECT_EQ(*Read(*file, 0, 6), "abcdef");
  EXPECT_EQ(*Read(*file, 4, 2), "ef");
  EXPECT_EQ(*Read(*file, 6, 0), "");
}

TEST_F(DataFileTest, NamesRewrittenFile) {
  const auto file = DataFile::Open(path_);
  WriteOver("ABCDEF");
  ExpectChanged(Read(*file, 0, 6).status(), "it had 6 bytes of ");
  const auto again = DataFile::Open(path_);
  WriteOver("longer than before");
  ExpectChanged(Read(*again, 0, 6).status(), ", and has 18 of ");
}

TEST_F(DataFileTest, FailsWhenShortened) {
  const auto file = DataFile::Open(path_);
  fs::resize_file(path_, 3);
  ExpectChanged(Read(*file, 2, 4).status(), ", and has 3 of ");
  fs::resize_file(path_, 0);
  ExpectChanged(Read(*file, 0, 6).status(), ", and has 0 of ");
}

TEST_F(DataFileTest, ReadsOnWhenReplacedOrRemoved) {
  const auto file = DataFile::Open(path_);
  Write("ghijkl");
  EXPECT_EQ(*Read(*file, 0, 6), "abcdef");
  fs::remove(path_);
  EXPECT_EQ(*Read(*file, 0, 6), "abcdef");
}

TEST_F(DataFileTest, RefusesWhatIsNoRegularFile) {
  const std::string fifo = folder_.File("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {folder_.path(), fifo}) {
    EXPECT_THAT(std::string(DataFile::Open(path).status().message()),
                AllOf(StartsWith(path + ": is a "), HasSubstr(", not a regular file")));
  }
  EXPECT_EQ(DataFile::Open(folder_.File("absent")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DataFileTest, MoreFilesThanTheSoftLimitAreOpened) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {.rlim_cur = 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<DataFile> files;
  for (int i = 0; i < 30; ++i) {
    absl::StatusOr<DataFile> file = DataFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    files.push_back(*std::move(file));
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(DataFileTest, TellsReadersOfChange) {
  const auto tokens = OpenTokens(path_, TokenFormat::kAuto);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  fs::resize_file(path_, 0);
  std::vector<int32_t> some(3);
  ExpectChanged(tokens->Read(1, absl::MakeSpan(some)), "has 0");
  ExpectChanged(tokens->ValidateVocabulary(256), "has 0");
  ExpectChanged(tokens->Fingerprint().status(), "has 0");
}

}  // namespace
}  // namespace distro::worker
