// The command line of distro-worker.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/fingerprint_command.h"
#include "worker/generate_command.h"
#include "worker/options.h"
#include "worker/text_floor_command.h"

namespace distro::worker {

// As ParseFlags.
std::vector<std::string> ParseCommandLine(int argc, char** argv);

// The flags as validated options. InvalidArgument names the flag.
absl::StatusOr<WorkerOptions> WorkerOptionsFromFlags();
absl::StatusOr<GenerateCommandOptions> GenerateOptionsFromFlags();
absl::StatusOr<TextFloorOptions> TextFloorOptionsFromFlags();
// Not validated.
FingerprintOptions FingerprintOptionsFromFlags();

}  // namespace distro::worker
