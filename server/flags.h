// The command line of distro-aggregator.
#pragma once

#include "absl/status/statusor.h"
#include "server/options.h"

namespace distro::server {

// Parses argv with absl's flags; --help and --version end the process. InvalidArgument: a positional argument.
absl::Status ParseCommandLine(int argc, char** argv);

// The flags as validated options. InvalidArgument names the flag.
absl::StatusOr<AggregatorOptions> OptionsFromFlags();

}  // namespace distro::server
