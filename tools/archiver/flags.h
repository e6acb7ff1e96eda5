// Command line of distro-archiver.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/archiver/options.h"

namespace distro::tools {

// Parses the flags; --help and --version print and exit. InvalidArgument: there are arguments that are no flags.
absl::Status ParseArchiverCommandLine(int argc, char** argv);

// Validated.
absl::StatusOr<ArchiverOptions> ArchiverOptionsFromFlags();

}  // namespace distro::tools
