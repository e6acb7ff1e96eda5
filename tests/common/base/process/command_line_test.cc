#include "common/base/process/command_line.h"

#include <memory>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// One of each kind.
struct Values {
  std::string path;
  uint64_t rounds = 7;
  int steps = -1;
  double share = 0;
  absl::Duration every = absl::Minutes(30);
  std::vector<std::string> hosts;
  bool force = false;
  bool upload = true;
  std::string mode = "fast";
  uint64_t ring = uint64_t{256} << 20;
  LogLevel log_level = LogLevel::kInfo;
  std::string name;
  std::string round = "none";
};

struct Done {
  int code;
  std::string out, error;
  Values values;
  std::string ran;  // "sample", "log show", "alone"
};

std::vector<Flag> Flags(Values* values) {
  return {{.name = "path", .value = &values->path, .help = "A path.", .takes = Takes::kFile},
          {.name = "rounds", .value = &values->rounds, .help = "Rounds."},
          {.name = "steps", .value = &values->steps, .help = "Steps."},
          {.name = "share", .value = &values->share, .help = "Share."},
          {.name = "every", .value = &values->every, .help = "Time."},
          {.name = "hosts", .value = &values->hosts, .help = "Hosts."},
          {.name = "force", .value = &values->force, .help = "Forces."},
          {.name = "upload", .value = &values->upload, .help = "Uploads."},
          {.name = "mode", .value = &values->mode, .help = "Mode.", .choices = {"fast", "slow"}},
          {.name = "ring", .value = ByteSize{&values->ring}, .help = "Memory."},
          LogLevelFlag(&values->log_level)};
}

// A program with commands; `alone`: also with something to do without one.
Done Call(const std::vector<std::string>& words, bool alone = false) {
  Done done;
  Values* values = &done.values;
  const auto ran = [&done](std::string what) {
    return [&done, what = std::move(what)]() -> absl::StatusOr<int> {
      done.ran = what;
      return 0;
    };
  };
  Program program = {
      .name = "test-program",
      .summary = "tests.",
      .commands = {{.name = "sample",
                    .arguments = {{.name = "NAME", .value = &values->name},
                                  {.name = "ROUND", .value = &values->round, .required = false}},
                    .summary = "A sample.",
                    .flags = Flags(values),
                    .help = "Example: test-program sample w1",
                    .run = ran("sample")},
                   {.name = "log show", .summary = "Shows.", .run = ran("log show")},
                   {.name = "log list",
                    .summary = "Lists.",
                    .run = [] { return absl::AbortedError("nothing to list"); }}},
      .exit_codes = {{0, "done"}, {5, "aborted"}},
      .exit_code = [](const absl::Status& status) {
        return absl::IsInvalidArgument(status) ? 2 : 5;
      }};
  if (alone) program.commands.push_back({.flags = Flags(values), .run = ran("alone")});
  std::ostringstream out, error;
  done.code = RunProgram(program, words, &out, &error);
  done.out = out.str();
  done.error = error.str();
  return done;
}

void ExpectRefused(const std::vector<std::string>& words, const char* part) {
  const Done done = Call(words);
  EXPECT_EQ(done.code, 2) << part;
  EXPECT_EQ(done.ran, "");
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.error, AllOf(StartsWith("test-program: "), HasSubstr(part)));
}

TEST(CommandLineTest, TakesFlagsOfEveryKindInBothForms) {
  const Done done =
      Call({"sample", "--path",  "a b",    "w1",      "--rounds=12", "--share=-0.5", "--steps",
            "-3",     "--every", "250ms",  "--hosts", "x,y",         "--force",      "--mode",
            "slow",   "9",       "--ring", "1GiB",    "--log_level", "error"});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.ran, "sample");
  const Values& values = done.values;
  EXPECT_EQ(values.path, "a b");
  EXPECT_EQ(values.name, "w1");
  EXPECT_EQ(values.round, "9");
  EXPECT_EQ(values.rounds, 12u);
  EXPECT_EQ(values.steps, -3);
  EXPECT_EQ(values.share, -0.5);
  EXPECT_EQ(values.every, absl::Milliseconds(250));
  EXPECT_THAT(values.hosts, ElementsAre("x", "y"));
  EXPECT_TRUE(values.force);
  EXPECT_EQ(values.mode, "slow");
  EXPECT_EQ(values.ring, uint64_t{1} << 30);
  EXPECT_EQ(values.log_level, LogLevel::kError);
}

TEST(CommandLineTest, LeavesWhatIsNotGivenAsItWas) {
  const Done done = Call({"sample", "w1"});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.values.rounds, 7u);
  EXPECT_EQ(done.values.path, "");
  EXPECT_EQ(done.values.round, "none");
  EXPECT_FALSE(done.values.force);
  EXPECT_TRUE(done.values.upload);
  EXPECT_THAT(done.values.hosts, ElementsAre());
}

TEST(CommandLineTest, TurnsSwitchesOffInEveryForm) {
  for (const char* off : {"--noupload", "--upload=false", "--upload=0", "--upload=no"}) {
    const Done done = Call({"sample", "--force", off, "w1"});
    EXPECT_EQ(done.code, 0) << done.error;
    EXPECT_FALSE(done.values.upload) << off;
    EXPECT_TRUE(done.values.force);
    EXPECT_EQ(done.values.name, "w1") << "a switch takes no word";
  }
}

TEST(CommandLineTest, OfAFlagThatIsGivenTwiceTheLastCountsAndListsGoOn) {
  const Done done = Call({"sample", "w1", "--rounds", "1", "--rounds=2", "--upload", "--noupload",
                          "--hosts", "x", "--hosts=y,z"});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.values.rounds, 2u);
  EXPECT_FALSE(done.values.upload);
  EXPECT_THAT(done.values.hosts, ElementsAre("x", "y", "z"));
}

TEST(CommandLineTest, TakesEmptyValue) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"sample", "--path=", "w1"}, {"sample", "--path", "", "w1"}}) {
    const Done done = Call(words);
    EXPECT_EQ(done.code, 0) << done.error;
    EXPECT_EQ(done.values.path, "");
    EXPECT_EQ(done.values.name, "w1");
  }
}

TEST(CommandLineTest, TakesFlagAsValue) {
  EXPECT_EQ(Call({"sample", "--path", "--force", "w1"}).values.path, "--force");
  EXPECT_EQ(Call({"sample", "--path=--help", "w1"}).values.path, "--help");
}

TEST(CommandLineTest, EndsFlagsAtDashes) {
  const Done done = Call({"sample", "--", "--path"});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.values.name, "--path");
}

TEST(CommandLineTest, TakesCommandNameAsArgument) {
  EXPECT_EQ(Call({"sample", "log"}).values.name, "log");
  EXPECT_EQ(Call({"sample", "sample"}).values.name, "sample");
}

TEST(CommandLineTest, SizesHaveUnits) {
  EXPECT_EQ(Call({"sample", "w1", "--ring", "4096"}).values.ring, 4096u);
  EXPECT_EQ(Call({"sample", "w1", "--ring", "3B"}).values.ring, 3u);
  EXPECT_EQ(Call({"sample", "w1", "--ring", "2kB"}).values.ring, 2000u);
  EXPECT_EQ(Call({"sample", "w1", "--ring", "2 KiB"}).values.ring, 2048u);
  for (const char* bad : {"", "KiB", "1.5GB", "-1", "1 XB", "18000000000GiB"})
    ExpectRefused({"sample", "w1", "--ring", bad}, "--ring: '");
}

TEST(CommandLineTest, NamesTheFlagThatIsWrong) {
  ExpectRefused({"sample", "w1", "--colour", "red"}, "--colour: is no flag of 'sample'");
  ExpectRefused({"sample", "w1", "--colour=red"}, "--colour: is no flag of 'sample'");
  ExpectRefused({"sample", "w1", "-x"}, "-x: is no flag");
  ExpectRefused({"sample", "w1", "--rounds", "-1"}, "--rounds: '-1' is not a whole number from 0");
  ExpectRefused({"sample", "w1", "--steps", "1e9"}, "--steps");
  ExpectRefused({"sample", "w1", "--share", "nan"}, "--share");
  ExpectRefused({"sample", "w1", "--every", "3"}, "--every: '3' is not a duration");
  ExpectRefused({"sample", "w1", "--force=maybe"}, "--force: 'maybe' is not true or false");
  ExpectRefused({"sample", "w1", "--mode", "sideways"}, "none of fast, slow");
  ExpectRefused({"sample", "w1", "--log_level", "loud"}, "--log_level");
  ExpectRefused({"sample", "w1", "--path"}, "--path: 1 required FILE missing");
}

TEST(CommandLineTest, CountsTheArguments) {
  ExpectRefused({"sample"}, "sample: NAME is missing");
  ExpectRefused({"sample", "w1", "2", "three"}, "'three' is one argument too many");
}

TEST(CommandLineTest, NamesTheCommandsThatThereAre) {
  ExpectRefused({}, "no command; 'test-program --help'");
  ExpectRefused({"dance"}, "unknown command 'dance'");
  ExpectRefused({"log"}, "log show, log list");
  ExpectRefused({"log", "shw"}, "'log shw': is none of log show, log list");
}

TEST(CommandLineTest, ExitsWithCodeOfStatus) {
  const Done done = Call({"log", "list"});
  EXPECT_EQ(done.code, 5);
  EXPECT_EQ(done.error, "test-program: nothing to list\n");
}

TEST(CommandLineTest, FlagsBeforeACommandAreThoseOfTheProgramAlone) {
  const Done done = Call({"--rounds=3", "--path", "here", "sample", "w1", "--path=there"}, true);
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.ran, "sample");
  EXPECT_EQ(done.values.rounds, 3u);
  EXPECT_EQ(done.values.path, "there");
  EXPECT_EQ(Call({"--rounds=3", "log", "show"}, true).ran, "log show");
  EXPECT_EQ(Call({"--rounds=3"}, true).ran, "alone");
  EXPECT_EQ(Call({"dance"}, true).code, 2);
  ExpectRefused({"--rounds=3", "sample", "w1"}, "--rounds: is no flag");  // does nothing alone
}

TEST(CommandLineTest, HelpComesWhateverElseIsWrong) {
  const Done help = Call({"sample", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(
      help.out,
      AllOf(StartsWith("test-program sample NAME [ROUND]\n    A sample.\n\nFlags:"),
            HasSubstr("\n  --path FILE\n      A path.\n"),
            HasSubstr("\n  --every 10s\n      Time. Default: 30m.\n"),
            HasSubstr("\n  --ring BYTES\n      Memory. Default: 256MiB.\n"),
            HasSubstr("\n  --upload\n      Uploads. Default: true; --noupload: not.\n"),
            HasSubstr("\n\nExample: test-program sample w1\n\nExit codes:\n    0  done\n")));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"sample", "-h"}, {"help", "sample"}, {"sample", "--rounds", "x", "--colour", "--help"}})
    EXPECT_EQ(Call(words).out, help.out);
  EXPECT_EQ(Call({"dance", "--help"}).out, Call({"--help"}).out);
}

TEST(CommandLineTest, ListsCommandsInHelp) {
  EXPECT_THAT(Call({"help"}).out, AllOf(StartsWith("test-program: tests.\n"),
                                        HasSubstr("\n  log show             Shows."),
                                        HasSubstr("\n  completion SHELL "),
                                        Not(HasSubstr("--path")), EndsWith("\n    5  aborted\n")));
  EXPECT_THAT(Call({"help", "log"}).out, AllOf(HasSubstr("log show"), Not(HasSubstr("sample"))));
  EXPECT_THAT(Call({"--help"}, true).out, AllOf(HasSubstr("log show"), HasSubstr("--path FILE")));
}

TEST(CommandLineTest, VersionIsThatOfAllCommands) {
  EXPECT_THAT(Call({"--version"}).out, StartsWith("test-program "));
  EXPECT_EQ(Call({"sample", "--version"}).out, Call({"--version"}).out);
}

}  // namespace
}  // namespace distro
