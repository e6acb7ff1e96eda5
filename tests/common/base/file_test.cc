#include "common/base/file.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

class FileTest : public ::testing::Test {
 protected:
  testing::ScratchFolder folder_;
  const std::string path_ = folder_.File("f");
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

TEST_F(FileTest, AMappingMovesAndMayBeEmpty) {
  ASSERT_TRUE(WriteFileAtomically(path_, "bytes").ok());
  MappedFile file = *MappedFile::Open(path_);
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes(), "bytes");
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(MappedFile::Open(path_)->bytes(), "");
}

}  // namespace
}  // namespace distro
