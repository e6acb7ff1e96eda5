// The command line of distro-worker.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/generate_command.h"
#include "worker/options.h"
#include "worker/text_floor_command.h"

namespace distro::worker {

// Parses argv with absl's flags (--help and --version end the process) and returns the positional arguments, without
// the program's name.
std::vector<std::string> ParseCommandLine(int argc, char** argv);

// The flags as validated options. InvalidArgument names the flag.
absl::StatusOr<WorkerOptions> WorkerOptionsFromFlags();
absl::StatusOr<GenerateCommandOptions> GenerateOptionsFromFlags();
absl::StatusOr<TextFloorOptions> TextFloorOptionsFromFlags();

}  // namespace distro::worker
