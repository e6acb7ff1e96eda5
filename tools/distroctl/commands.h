// All commands of distroctl, and their exit codes (docs/tools.md). Each command's own file has its
// flags, texts and function.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,    // a disk error or another failure
  kExitUsage = 2,     // fix a flag, file or configuration
  kExitRefused = 3,   // the aggregator refuses, a file exists already, or credentials
  kExitDamaged = 4,   // stored data is damaged
  kExitFault = 5,     // the command was done, and what it checked is faulty
  kExitNoAnswer = 6,  // no aggregator answers at this address, or not in time: try again
  // 13 to 17: faults of the connection for which trying again cannot help
  // (common/client/probe/connection_fault.h).
};

ExitCode ExitCodeFor(const absl::Status& status);

// All commands, in the order of --help. They write to `console`, which is borrowed; --output sets
// its format.
std::vector<Command> Commands(Console* console);

// Results go to `out`, progress to `error`; both are borrowed.
Console ConsoleOn(std::ostream* out, std::ostream* error);
Program DistroctlProgram(Console* console);

// Runs `words`, a command line without the program's name. Results go to `out`, errors and progress
// to `error`.
int RunCommandLine(const std::vector<std::string>& words, std::ostream* out, std::ostream* error);

}  // namespace distro::tools
