#include "tools/distroctl/arguments.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/distroctl/command.h"

namespace distro::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Command Sample() {
  return {.name = "sample",
          .arguments = "NAME [ROUND]",
          .summary = "",
          .flags = {{.name = "path", .value = Value::kFile},
                    {.name = "rounds", .value = Value::kCount, .default_value = "7"},
                    {.name = "share", .value = Value::kNumber},
                    {.name = "every", .value = Value::kDuration},
                    {.name = "hosts", .value = Value::kWords},
                    {.name = "force", .value = Value::kSwitch},
                    {.name = "mode", .choices = {"fast", "slow"}}},
          .help = ""};
}

void ExpectRefused(const std::vector<std::string>& given, const char* part) {
  const auto arguments = ParseArguments(Sample(), given);
  EXPECT_EQ(arguments.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(arguments.status().message()), HasSubstr(part));
}

TEST(ArgumentsTest, TakesFlagsOfEveryKindInBothForms) {
  const auto arguments =
      ParseArguments(Sample(), {"--path", "a b", "w1", "--rounds=12", "--share=-0.5", "--every",
                                "250ms", "--hosts", "x,y", "--force", "--mode", "slow", "9"});
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_THAT(arguments->positional(), ElementsAre("w1", "9"));
  EXPECT_EQ(arguments->Text("path"), "a b");
  EXPECT_EQ(arguments->Count("rounds"), 12u);
  EXPECT_EQ(arguments->Number("share"), -0.5);
  EXPECT_EQ(arguments->Duration("every"), absl::Milliseconds(250));
  EXPECT_THAT(arguments->Words("hosts"), ElementsAre("x", "y"));
  EXPECT_TRUE(arguments->Switch("force"));
}

TEST(ArgumentsTest, FillsInDefaults) {
  const auto arguments = ParseArguments(Sample(), {"w1"});
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_EQ(arguments->Count("rounds"), 7u);
  EXPECT_EQ(arguments->Text("path"), "");
  EXPECT_FALSE(arguments->Switch("force"));
  EXPECT_THAT(arguments->Words("hosts"), ElementsAre());
  EXPECT_EQ(arguments->Text("output"), "text");
}

TEST(ArgumentsTest, TwoDashesEndTheFlags) {
  const auto arguments = ParseArguments(Sample(), {"--", "--path"});
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_THAT(arguments->positional(), ElementsAre("--path"));
}

TEST(ArgumentsTest, NamesTheFlagThatIsWrong) {
  ExpectRefused({"w1", "--colour", "red"}, "--colour");
  ExpectRefused({"w1", "--rounds", "-1"}, "--rounds");
  ExpectRefused({"w1", "--share", "nan"}, "--share");
  ExpectRefused({"w1", "--every", "3"}, "--every");
  ExpectRefused({"w1", "--force=yes"}, "--force");
  ExpectRefused({"w1", "--mode", "sideways"}, "fast, slow");
  ExpectRefused({"w1", "--path"}, "--path: its value is missing");
  ExpectRefused({"w1", "--rounds", "1", "--rounds", "1"}, "--rounds: is given twice");
}

TEST(ArgumentsTest, CountsTheArguments) {
  ExpectRefused({}, "NAME is missing");
  ExpectRefused({"w1", "2", "three"}, "'three' is one argument too many");
}

}  // namespace
}  // namespace distro::tools
