#include "worker/train/own_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(OwnRoundsTest, SaysNothingWhileMostOfThemCount) {
  OwnRounds rounds;
  EXPECT_EQ(rounds.What(), "");
  EXPECT_FALSE(rounds.Add(OwnPart::kCounted));
  EXPECT_FALSE(rounds.Add(OwnPart::kLate));
  EXPECT_EQ(rounds.What(), "");
  EXPECT_EQ(rounds.Remedy(), "");
  EXPECT_FALSE(rounds.Add(OwnPart::kLate));
  EXPECT_EQ(rounds.What(),
            "2 of its last 3 rounds did not count: 2 ended before its upload was over");
}

TEST(OwnRoundsTest, NamesEachReasonAndTheRemedyForTheMostFrequent) {
  OwnRounds rounds;
  rounds.Add(OwnPart::kCounted);
  for (int i = 0; i < 15; ++i) rounds.Add(OwnPart::kNotReady);
  rounds.Add(OwnPart::kNotFinite);
  EXPECT_EQ(
      rounds.What(),
      "16 of its last 16 rounds did not count: 15 ended before its steps were over, 1 not finite");
  EXPECT_THAT(rounds.Remedy(), StartsWith("this machine is too slow"));
  for (int i = 0; i < 16; ++i) rounds.Add(OwnPart::kOtherSender);
  EXPECT_THAT(rounds.Remedy(), HasSubstr("--name"));
}

TEST(OwnRoundsTest, IsDocumented) {
  for (int part = 1; part < kOwnParts; ++part) {
    OwnRounds rounds;
    rounds.Add(static_cast<OwnPart>(part));
    const std::string what = rounds.What();
    const std::string reason = what.substr(what.find(": 1 ") + 4);
    const std::string row = absl::StrCat("| `", reason, "` | `", rounds.Remedy(), "` |");
    EXPECT_TRUE(testing::TroubleshootingPageHas(row, "HOST:PORT", "no folder")) << row;
  }
}

TEST(OwnRoundsTest, TellsAfterSixteenInARowAndAtEachDoubling) {
  OwnRounds rounds;
  int told = 0;
  for (int i = 0; i < 15; ++i) told += rounds.Add(OwnPart::kProbation) ? 1 : 0;
  EXPECT_EQ(told, 0);
  for (int i = 15; i < 64; ++i) told += rounds.Add(OwnPart::kNotReady) ? 1 : 0;
  EXPECT_EQ(told, 3);
  EXPECT_EQ(rounds.uncounted_in_a_row(), 64u);
  rounds.Add(OwnPart::kCounted);
  EXPECT_EQ(rounds.uncounted_in_a_row(), 0u);
  for (int i = 0; i < 16; ++i) told += rounds.Add(OwnPart::kAbsent) ? 1 : 0;
  EXPECT_EQ(told, 4);
}

}  // namespace
}  // namespace distro::worker
