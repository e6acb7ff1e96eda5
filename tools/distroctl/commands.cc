#include "tools/distroctl/commands.h"

#include <algorithm>
#include <optional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/json.h"
#include "common/base/version.h"
#include "tools/distroctl/bench_link.h"
#include "tools/distroctl/certs.h"
#include "tools/distroctl/check.h"
#include "tools/distroctl/completion.h"
#include "tools/distroctl/create_run.h"
#include "tools/distroctl/init_model.h"
#include "tools/distroctl/log_ls.h"
#include "tools/distroctl/log_show.h"
#include "tools/distroctl/log_verify.h"
#include "tools/distroctl/operate.h"
#include "tools/distroctl/plan.h"
#include "tools/distroctl/replay_log.h"
#include "tools/distroctl/show_run.h"
#include "tools/distroctl/token.h"
#include "tools/distroctl/usage.h"
#include "tools/distroctl/workers.h"

namespace distro::tools {
namespace {

// How many of the first words are this command's name; 0: it is another.
size_t Matches(const Command& command, const std::vector<std::string>& words) {
  const std::vector<std::string> name = absl::StrSplit(command.name, ' ');
  const bool matches =
      words.size() >= name.size() && std::equal(name.begin(), name.end(), words.begin());
  return matches ? name.size() : 0;
}

bool AsksForHelp(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

// The commands that begin with the words: "run" is all of its family.
std::vector<Command> Family(const std::vector<Command>& commands, const std::string& first) {
  std::vector<Command> family;
  for (const Command& command : commands) {
    const std::vector<std::string> name = absl::StrSplit(command.name, ' ');
    if (name[0] == first) family.push_back(command);
  }
  return family;
}

std::string HelpFor(const std::vector<Command>& commands, const std::vector<std::string>& words) {
  for (const Command& command : commands)
    if (Matches(command, words) > 0) return CommandHelp(command);
  const std::vector<Command> family = words.empty() ? commands : Family(commands, words[0]);
  return Overview(family.empty() ? commands : family);
}

absl::Status Unknown(const std::vector<Command>& commands, const std::vector<std::string>& words) {
  if (words.empty()) return absl::InvalidArgumentError("no command; 'distroctl help' lists them");
  std::vector<std::string> names;
  for (const Command& command : Family(commands, words[0])) names.push_back(command.name);
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown command '", words[0], "'; 'distroctl help' lists them"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::StrJoin(words, " "), "': is none of ", absl::StrJoin(names, ", ")));
}

ExitCode Fail(const absl::Status& status, std::ostream* error) {
  *error << "distroctl: " << status.message() << "\n";
  return ExitCodeFor(status);
}

ExitCode RunCommand(const Command& command, const std::vector<std::string>& given,
                    const Console& console, std::ostream* error) {
  const absl::StatusOr<Arguments> arguments = ParseArguments(command, given);
  if (!arguments.ok()) return Fail(arguments.status(), error);
  const absl::StatusOr<Report> report = command.run(*arguments, console);
  if (!report.ok()) return Fail(report.status(), error);
  if (report->text.empty() && report->json.is_null()) return kExitDone;
  if (arguments->Text("output") == "json") {
    *console.out << WriteJson(report->json);
  } else {
    *console.out << report->text << "\n";
  }
  console.out->flush();
  return report->verdict.ok() ? kExitDone : Fail(report->verdict, error);
}

}  // namespace

std::vector<Command> Commands() {
  return {RunCreateCommand(), RunShowCommand(),     RunPauseCommand(),  RunResumeCommand(),
          WorkersCommand(),   EvictCommand(),       AdmitCommand(),     CheckCommand(),
          BenchLinkCommand(), LogLsCommand(),       LogShowCommand(),   LogVerifyCommand(),
          LogReplayCommand(), PlanCommand(),        InitModelCommand(), CertsCommand(),
          TokenNewCommand(),  TokenRevokeCommand(), CompletionCommand()};
}

ExitCode RunCommandLine(const std::vector<std::string>& words, std::ostream* out,
                        std::ostream* error) {
  const std::vector<Command> commands = Commands();
  if (words == std::vector<std::string>{"--version"}) {
    *out << "distroctl " << Version() << "\n";
    return kExitDone;
  }
  if (AsksForHelp(words) || (!words.empty() && words[0] == "help")) {
    const size_t skip = !words.empty() && words[0] == "help" ? 1 : 0;
    *out << HelpFor(commands, {words.begin() + skip, words.end()}) << "\n";
    return kExitDone;
  }
  const Console console = {.progress = [error](absl::string_view line) { *error << line << "\n"; },
                           .out = out};
  for (const Command& command : commands) {
    if (const size_t name = Matches(command, words); name > 0)
      return RunCommand(command, {words.begin() + name, words.end()}, console, error);
  }
  return Fail(Unknown(commands, words), error);
}

}  // namespace distro::tools
