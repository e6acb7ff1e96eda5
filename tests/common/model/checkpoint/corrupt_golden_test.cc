// The golden set "corrupt": expected.txt lists "<file> <reason>: <what is wrong>".
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/model/checkpoint/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string file;
  std::string reason;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const std::string text = *ReadFile(testing::GoldenDir() + "/corrupt/expected.txt");
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    cases.push_back({std::string(words[0]), std::string(absl::StripSuffix(words[1], ":"))});
  }
  return cases;
}

TEST(CorruptGoldenTest, RefusesFilesForTheirReason) {
  int good = 0, bad = 0;
  for (const Case& c : Cases()) {
    const absl::Status status =
        SafetensorsFile::Open(testing::GoldenDir() + "/corrupt/" + c.file).status();
    ++(c.reason == "ok" ? good : bad);
    if (c.reason == "ok") {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.file << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.file + ": " + c.reason + ": "));
  }
  EXPECT_EQ(good, 1);
  EXPECT_GE(bad, 10);
}

TEST(CorruptGoldenTest, OpensGoodFile) {
  const auto file = SafetensorsFile::Open(testing::GoldenDir() + "/corrupt/good.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file->tensors()[1].bytes[0], 24);
}

}  // namespace
}  // namespace distro
