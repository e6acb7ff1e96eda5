// The command line of distro-aggregator: its flags, help texts and exit codes.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "common/base/process/command_line.h"
#include "server/options/options.h"

namespace distro::server {

// The exit code for a status that ended the process or prevented its start.
int ExitCode(const absl::Status& status);

// Fills `options`, which is borrowed, validates them and calls `run`.
Program AggregatorProgram(AggregatorOptions* options, std::function<absl::StatusOr<int>()> run);

}  // namespace distro::server
