// The exit codes of distroctl (docs/tools.md). Pure.
#pragma once

#include "absl/status/status.h"

namespace distro::tools {

enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,    // a disk or something else fails
  kExitUsage = 2,     // a flag, file or configuration must be mended
  kExitRefused = 3,   // the aggregator or a file that is there stands against it; credentials
  kExitDamaged = 4,   // stored data is damaged
  kExitFault = 5,     // the command is done, and what it looked at is not as it should be
  kExitNoAnswer = 6,  // no aggregator answers at this address, or not in time: try again
};

ExitCode ExitCodeFor(const absl::Status& status);

// A table of all codes for --help.
const char* ExitCodeHelp();

}  // namespace distro::tools
