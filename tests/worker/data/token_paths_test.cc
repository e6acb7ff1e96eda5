#include "worker/data/token_paths.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenPathsTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name) {
    EXPECT_TRUE(WriteFileAtomically(folder_.File(name), "x").ok());
    return folder_.File(name);
  }
  void ExpectRefused(const std::string& data, absl::StatusCode code, const std::string& message) {
    const absl::Status status = FindTokenFiles(data).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  testing::ScratchFolder folder_;
};

TEST_F(TokenPathsTest, CommasKeepTheirOrderAndPatternsGoByBytes) {
  const std::string ten = Make("part-10.bin"), two = Make("part-2.bin"), big = Make("part-B.bin"),
                    small = Make("part-a.bin"), first = Make("z.bin");
  EXPECT_THAT(*FindTokenFiles(absl::StrCat(first, ",", folder_.File("part-*.bin"))),
              ElementsAre(first, ten, two, big, small));
  EXPECT_THAT(*FindTokenFiles(folder_.File("part-[!aB].bin")), ElementsAre(two));
}

TEST_F(TokenPathsTest, TakesNameOfFile) {
  const std::string comma = Make("a,b.txt"), bracket = Make("a[1].txt");
  Make("a1.txt");
  EXPECT_THAT(*FindTokenFiles(comma), ElementsAre(comma));
  EXPECT_THAT(*FindTokenFiles(bracket), ElementsAre(bracket));
}

// Opening it reports that it does not exist, with the usual message.
TEST_F(TokenPathsTest, TakesMissingName) {
  EXPECT_THAT(*FindTokenFiles(folder_.File("absent.txt")), ElementsAre(folder_.File("absent.txt")));
}

TEST_F(TokenPathsTest, RefusesWhatWouldBeAMistake) {
  const std::string file = Make("a.bin");
  ExpectRefused(folder_.File("*.u32"), absl::StatusCode::kNotFound, "*.u32: matches no file");
  ExpectRefused(absl::StrCat(file, ",", folder_.File("*")), absl::StatusCode::kInvalidArgument,
                "a.bin: is given twice");
  ExpectRefused(absl::StrCat(file, ",", folder_.path(), "/./a.bin"),
                absl::StatusCode::kInvalidArgument, "is given twice");
  ExpectRefused(absl::StrCat(file, ","), absl::StatusCode::kInvalidArgument, "empty");
  ExpectRefused(folder_.path(), absl::StatusCode::kInvalidArgument, "is a folder");
  std::filesystem::create_directory(folder_.File("inner"));
  ExpectRefused(folder_.File("*"), absl::StatusCode::kInvalidArgument, "inner: is a folder");
  Make("inner/dataset_info.json");
  ExpectRefused(folder_.File("inner"), absl::StatusCode::kInvalidArgument,
                "inner: holds the documents of a data set of Hugging Face");
}

}  // namespace
}  // namespace distro::worker
