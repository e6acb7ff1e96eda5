// The command line of distro-worker: the flags of its options, its commands, and the text of
// --help.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "worker/options.h"

namespace distro::worker {

// Without a command: fills `options`, which is borrowed, validates them and calls `run`.
Program WorkerProgram(WorkerOptions* options, std::function<absl::StatusOr<int>()> run);

}  // namespace distro::worker
