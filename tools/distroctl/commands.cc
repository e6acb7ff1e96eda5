#include "tools/distroctl/commands.h"

#include <optional>
#include <ostream>

#include "common/base/utf8.h"
#include "common/client/probe/connection_fault.h"
#include "tools/distroctl/check.h"
#include "tools/distroctl/check_connection.h"
#include "tools/distroctl/create_run.h"
#include "tools/distroctl/credentials.h"
#include "tools/distroctl/init_model.h"
#include "tools/distroctl/invite.h"
#include "tools/distroctl/log_copy.h"
#include "tools/distroctl/log_verify.h"
#include "tools/distroctl/operate.h"
#include "tools/distroctl/plan.h"
#include "tools/distroctl/replay_log.h"
#include "tools/distroctl/restore_run.h"
#include "tools/distroctl/stored_log.h"
#include "tools/distroctl/workers.h"

namespace distro::tools {
namespace {

constexpr char kHelp[] =
    R"(A command with HOST:PORT also requires --ca FILE and either --token_file FILE or --cert FILE --key FILE, or --insecure.
--output json prints JSON for programs. Results go to standard output, the rest to standard error.
For completion in bash: source <(distroctl completion bash))";

std::vector<ExitCodeHelp> ExitCodes() {
  std::vector<ExitCodeHelp> codes = {
      {kExitDone, "done"},
      {kExitFailed, "failure: a disk error, or anything not listed below"},
      {kExitUsage, "a flag, file or configuration must be fixed; the message names it"},
      {kExitRefused,
       "refused: by the aggregator, for bad credentials, because the target exists, or because "
       "stored data is of a newer version"},
      {kExitDamaged, "stored data is damaged; the message names the file"},
      {kExitFault, "done, but a fault was found (check, bench-link, log replay, plan)"},
      {kExitNoAnswer,
       "no aggregator answers at this address, or not in time; trying again may help"}};
  for (const FaultRule& rule : FaultRules()) {
    if (rule.exit_code != 0 && !rule.passes)
      codes.push_back({rule.exit_code, std::string(rule.summary)});
  }
  return codes;
}

}  // namespace

ExitCode ExitCodeFor(const absl::Status& status) {
  // A fault that may pass is kExitNoAnswer, by its status code.
  const std::optional<int> of_connection = ConnectionExitCode(status);
  if (of_connection && !absl::IsUnavailable(status)) return static_cast<ExitCode>(*of_connection);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitUsage;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kExitRefused;
    case absl::StatusCode::kDataLoss:
      return kExitDamaged;
    case absl::StatusCode::kAborted:
      return kExitFault;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitNoAnswer;
    default:
      return kExitFailed;
  }
}

std::vector<Command> Commands(Console* console) {
  std::vector<Command> commands = {
      RunCreateCommand(console), RunShowCommand(console),         RunPauseCommand(console),
      RunResumeCommand(console), RunExtendCommand(console),       RunRestoreCommand(console),
      WorkersCommand(console),   EvictCommand(console),           AdmitCommand(console),
      CheckCommand(console),     CheckConnectionCommand(console), BenchLinkCommand(console),
      LogLsCommand(console),     LogShowCommand(console),         LogVerifyCommand(console),
      LogCopyCommand(console),   LogReplayCommand(console),       PlanCommand(console),
      InitModelCommand(console), CertsCommand(console),           InviteCommand(console),
      TokenNewCommand(console),  TokenRevokeCommand(console)};
  for (Command& command : commands) {
    const bool plans = command.name == "plan";
    command.flags.push_back(
        {.name = "output",
         .value = &console->output,
         .help = absl::StrCat("text for people, json for programs (docs/tools.md)",
                              plans ? ", helm for the chart." : "."),
         .choices = {"text", "json"}});
    if (plans) command.flags.back().choices.push_back("helm");
  }
  return commands;
}

Console ConsoleOn(std::ostream* out, std::ostream* error) {
  return {.progress = [error](absl::string_view line) { *error << ShownLines(line) << "\n"; },
          .out = out};
}

Program DistroctlProgram(Console* console) {
  return {.name = "distroctl",
          .summary = "prepares, inspects and operates runs, and plans their cost.",
          .commands = Commands(console),
          .help = kHelp,
          .exit_codes = ExitCodes(),
          .exit_code = ExitCodeFor};
}

int RunCommandLine(const std::vector<std::string>& words, std::ostream* out, std::ostream* error) {
  Console console = ConsoleOn(out, error);
  return RunProgram(DistroctlProgram(&console), words, out, error);
}

}  // namespace distro::tools
