// The commands of distro-worker that train nothing: generate, fingerprint and text-floor.
#include "worker/commands.h"

#include "common/base/file.h"
#include "common/base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(GenerateCommandTest, ContinuesThePromptReproducibly) {
  const testing::TinyRun tiny;
  GenerateCommandOptions options;
  options.model = tiny.checkpoint_dir();
  options.prompt = "the cat";
  options.tokens = 20;
  const absl::StatusOr<std::string> text = GenerateText(options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, StartsWith("the cat"));
  EXPECT_TRUE(IsValidUtf8(*text));
  EXPECT_EQ(*text, *GenerateText(options));
}

TEST(GenerateCommandTest, NamesAMissingCheckpoint) {
  GenerateCommandOptions options;
  options.model = "/nowhere";
  options.prompt = "x";
  const absl::Status status = GenerateText(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere"));
}

TEST(FingerprintCommandTest, DoesNotDependOnTheFormat) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("a.txt"), "ab").ok());
  ASSERT_TRUE(WriteFileAtomically(folder.File("a.u16"), std::string("a\0b\0", 4)).ok());
  const auto text = DataFingerprint({.data = folder.File("a.txt"), .data_format = "auto"});
  const auto tokens = DataFingerprint({.data = folder.File("a.u16"), .data_format = "uint16"});
  ASSERT_TRUE(text.ok() && tokens.ok()) << text.status() << tokens.status();
  EXPECT_EQ(text->substr(0, 64), tokens->substr(0, 64));
  EXPECT_THAT(*text, HasSubstr("  2 tokens  "));
}

TEST(FingerprintCommandTest, NamesTheFlagThatIsWrong) {
  EXPECT_THAT(std::string(DataFingerprint({}).status().message()), HasSubstr("--data"));
  EXPECT_THAT(
      std::string(
          DataFingerprint({.data = "absent.txt", .data_format = "auto"}).status().message()),
      HasSubstr("absent.txt"));
}

TEST(FingerprintCommandTest, DoesNotDependOnTheFiles) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("all.txt"), "abc").ok());
  ASSERT_TRUE(WriteFileAtomically(folder.File("1.txt"), "ab").ok());
  ASSERT_TRUE(WriteFileAtomically(folder.File("2.txt"), "c").ok());
  const auto all = DataFingerprint({.data = folder.File("all.txt")});
  const auto parts = DataFingerprint({.data = folder.File("[12].txt")});
  ASSERT_TRUE(all.ok() && parts.ok()) << all.status() << parts.status();
  EXPECT_EQ(all->substr(0, 64), parts->substr(0, 64));
  EXPECT_THAT(*parts, HasSubstr("  3 tokens  "));
}

// Two bytes in turn: the frequencies know nothing (ln 2), the neighbours everything.
TEST(TextFloorCommandTest, BigramsKnowMoreThanFrequencies) {
  const testing::ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text.append("ab");
  ASSERT_TRUE(WriteFileAtomically(folder.File("text.txt"), text).ok());
  const absl::StatusOr<std::string> report = TextFloorReport(
      {.data = folder.File("text.txt"), .sequence_length = 64, .held_out_fraction = 0.1});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(*report, HasSubstr("byte frequencies  0.69"));
  EXPECT_THAT(*report, HasSubstr("byte bigrams      0.00"));
}

TEST(TextFloorCommandTest, RefusesWhatIsNotText) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("text.txt"), "abc\xff").ok());
  EXPECT_EQ(TextFloorReport({.data = folder.File("text.txt")}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace distro::worker
