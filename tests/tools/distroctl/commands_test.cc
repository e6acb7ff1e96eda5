// The table of commands as a whole: every one explains itself, and the command line finds it.
#include "tools/distroctl/commands.h"

#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/process/command_text.h"
#include "common/client/probe/connection_fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Done {
  int code;
  std::string out, error;
};

Done Distroctl(const std::string& words) {
  std::ostringstream out, error;
  const int code = RunCommandLine(absl::StrSplit(words, ' ', absl::SkipEmpty()), &out, &error);
  return {code, out.str(), error.str()};
}

// To look at, not to run: they have no console.
std::vector<Command> AllCommands() {
  static Console console;
  return Commands(&console);
}

TEST(CommandsTest, ShowsExampleInHelp) {
  for (const Command& command : AllCommands()) {
    SCOPED_TRACE(command.name);
    const Done done = Distroctl(absl::StrCat("help ", command.name));
    EXPECT_EQ(done.code, kExitDone);
    EXPECT_THAT(done.out, AllOf(HasSubstr(command.summary.substr(0, 40)), HasSubstr("Example"),
                                HasSubstr("Exit codes:")));
    EXPECT_THAT(done.out.substr(done.out.find("Example")),
                HasSubstr(absl::StrCat("distroctl ", command.name)));
    for (const Flag& flag : command.flags) {
      EXPECT_THAT(done.out, HasSubstr(absl::StrCat("\n  --", flag.name)));
      EXPECT_FALSE(flag.help.empty()) << flag.name;
    }
    EXPECT_EQ(Distroctl(absl::StrCat(command.name, " --help")).out, done.out);
  }
}

TEST(CommandsTest, NamesAreDistinctAndNoFlagIsDeclaredTwice) {
  std::set<std::string> names;
  for (const Command& command : AllCommands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    std::set<std::string> flags = {"version", "help"};
    for (const Flag& flag : command.flags)
      EXPECT_TRUE(flags.insert(flag.name).second) << command.name << " --" << flag.name;
  }
}

TEST(CommandsTest, IsListedInHelp) {
  const Done all = Distroctl("--help");
  for (const Command& command : AllCommands())
    EXPECT_THAT(all.out, HasSubstr(absl::StrCat("\n  ", command.name, " "))) << command.name;
  EXPECT_THAT(Distroctl("help log").out,
              AllOf(HasSubstr("log verify"), Not(HasSubstr("run create"))));
}

TEST(CommandsTest, SaysWhatIsWrongWithTheCommandLine) {
  EXPECT_EQ(Distroctl("").code, kExitUsage);
  EXPECT_THAT(Distroctl("dance").error, HasSubstr("unknown command 'dance'"));
  EXPECT_THAT(Distroctl("run shw").error, HasSubstr("run create, run show"));
  EXPECT_THAT(Distroctl("workers").error, HasSubstr("HOST:PORT is missing"));
  EXPECT_EQ(Distroctl("workers --colour red").code, kExitUsage);
}

TEST(CommandsTest, PrintsForPeopleAndForPrograms) {
  EXPECT_THAT(Distroctl("token new w1 --role worker").out, HasSubstr("line w1 worker "));
  const Done done = Distroctl("token new w1 --role worker --output json");
  const auto json = ParseJson(done.out);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["token"].get<std::string>().size(), 43u);
  EXPECT_EQ(done.error, "");
}

TEST(CommandsTest, ExitCodesTellWhatTheCallerCanDo) {
  EXPECT_EQ(Distroctl("run show 127.0.0.1:1").code, kExitUsage) << "plaintext must be asked for";
  EXPECT_EQ(Distroctl("run show 127.0.0.1:1 --insecure").code, kExitNoAnswer);
  EXPECT_EQ(Distroctl("log ls --data_dir /nowhere").code, kExitUsage);
  EXPECT_EQ(ExitCodeFor(absl::UnauthenticatedError("")), kExitRefused);
  EXPECT_EQ(ExitCodeFor(absl::AlreadyExistsError("")), kExitRefused);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), kExitDamaged);
  EXPECT_EQ(ExitCodeFor(absl::AbortedError("")), kExitFault);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), kExitFailed);
  for (const FaultRule& rule : FaultRules()) {
    const int code = rule.passes           ? kExitNoAnswer
                     : rule.exit_code == 0 ? kExitRefused
                                           : rule.exit_code;
    EXPECT_EQ(ExitCodeFor(StatusOf({.kind = rule.kind})), code) << rule.reason;
  }
}

TEST(CommandsTest, IsDocumentedWithExitCodes) {
  const auto page = ReadFile(DISTRO_SOURCE_DIR "/docs/tools.md");
  ASSERT_TRUE(page.ok()) << page.status();
  for (const Command& command : AllCommands()) {
    EXPECT_THAT(*page, HasSubstr(absl::StrCat("| `", Usage(command), "` |")));
  }
  for (int code = kExitDone; code <= kExitNoAnswer; ++code)
    EXPECT_THAT(*page, HasSubstr(absl::StrCat("\n| ", code, " | ")));
  const std::string help = Distroctl("help check-connection").out;
  for (const FaultRule& rule : FaultRules()) {
    if (rule.passes || rule.exit_code == 0) continue;
    EXPECT_THAT(*page, HasSubstr(absl::StrCat("\n| ", rule.exit_code, " | ")));
    EXPECT_THAT(help, HasSubstr(absl::StrCat("   ", rule.exit_code, "  ", rule.summary)));
  }
}

}  // namespace
}  // namespace distro::tools
