// The command line of distro-archiver: the flags for its options, and the text of --help.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "tools/archiver/options.h"

namespace distro::tools {

// Fills `options`, which is borrowed, validates them and calls `run`.
Program ArchiverProgram(ArchiverOptions* options, std::function<absl::StatusOr<int>()> run);

}  // namespace distro::tools
