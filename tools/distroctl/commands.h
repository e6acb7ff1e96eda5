// All commands of distroctl, and how they end (docs/tools.md). A command's file makes it: flags,
// words and what it does.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,    // a disk or something else fails
  kExitUsage = 2,     // a flag, file or configuration must be mended
  kExitRefused = 3,   // the aggregator or a file that is there stands against it; credentials
  kExitDamaged = 4,   // stored data is damaged
  kExitFault = 5,     // the command is done, and what it looked at is not as it should be
  kExitNoAnswer = 6,  // no aggregator answers at this address, or not in time: try again
  // 13 to 17: what stands between, where trying again cannot help
  // (common/client/probe/connection_fault.h).
};

ExitCode ExitCodeFor(const absl::Status& status);

// In the order of --help. They write to `console`, which is borrowed, and whose output --output
// sets.
std::vector<Command> Commands(Console* console);

// Runs `words`, a command line without the program's name: the result goes to `out`, errors and
// progress to `error`.
int RunCommandLine(const std::vector<std::string>& words, std::ostream* out, std::ostream* error);

}  // namespace distro::tools
