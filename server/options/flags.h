// The command line of distro-aggregator: the flags that fill its options, what --help teaches, and
// its exit codes.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "common/process/command_line.h"
#include "server/options/options.h"

namespace distro::server {

// Of a status that ended the process, or kept it from starting.
int ExitCode(const absl::Status& status);

// Fills `options`, which is borrowed, validates them and calls `run`.
Program AggregatorProgram(AggregatorOptions* options, std::function<absl::StatusOr<int>()> run);

}  // namespace distro::server
