#include "common/base/line_file.h"

#include <filesystem>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

class LineFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<LineFile> Open(uint64_t max_bytes = 1000) {
    auto file = LineFile::Open(path_, max_bytes);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  std::string Bytes() const { return *ReadFile(path_); }

  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("metrics.jsonl");
};

TEST_F(LineFileTest, GoesOnBehindTheLinesThatAreThere) {
  ASSERT_TRUE(Open()->Append("one").ok());
  const auto file = Open();
  ASSERT_TRUE(file->Append("two").ok());
  ASSERT_TRUE(file->Append("three").ok());
  EXPECT_EQ(Bytes(), "one\ntwo\nthree\n");
}

TEST_F(LineFileTest, LosesOnlyCutLine) {
  const std::string whole = "{\"round\": 1}\n{\"round\": 2}\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    ASSERT_TRUE(WriteFileAtomically(path_, whole.substr(0, size)).ok());
    ASSERT_TRUE(Open()->Append("next").ok());
    const size_t kept = size < 13 ? 0 : size < whole.size() ? 13 : whole.size();
    EXPECT_EQ(Bytes(), whole.substr(0, kept) + "next\n") << size;
  }
}

TEST_F(LineFileTest, CutsLongTailWithoutLineFeed) {
  ASSERT_TRUE(WriteFileAtomically(path_, "one\n" + std::string(10000, '\0')).ok());
  ASSERT_TRUE(Open()->Append("two").ok());
  EXPECT_EQ(Bytes(), "one\ntwo\n");
}

TEST_F(LineFileTest, MovesFullFileAside) {
  auto file = Open(/*max_bytes=*/10);
  for (const char* line : {"aaaa", "bbbb", "cccc", "dddd", "eeee"})
    ASSERT_TRUE(file->Append(line).ok());
  EXPECT_EQ(Bytes(), "eeee\n");
  EXPECT_EQ(*ReadFile(path_ + ".1"), "cccc\ndddd\n");
  file = Open(10);
  ASSERT_TRUE(file->Append(std::string(50, 'x')).ok()) << "a line longer than the bound is written";
  EXPECT_EQ(Bytes(), std::string(50, 'x') + "\n");
  EXPECT_EQ(*ReadFile(path_ + ".1"), "eeee\n");
}

// As after a rotation on a full disk, where the file could be renamed and no new one be made.
TEST_F(LineFileTest, GoesOnWithoutTheFileThatItMovesAside) {
  const auto file = Open(10);
  ASSERT_TRUE(file->Append("12345678").ok());
  std::filesystem::remove(path_);
  ASSERT_TRUE(file->Append("next").ok());
  EXPECT_EQ(Bytes(), "next\n");
}

TEST_F(LineFileTest, SaysWhyItCannotWrite) {
  EXPECT_EQ(LineFile::Open(folder_.File("absent/metrics.jsonl"), 10).status().code(),
            absl::StatusCode::kNotFound);
  const auto full = LineFile::Open("/dev/full", 1000);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ((*full)->Append("x").code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace distro
