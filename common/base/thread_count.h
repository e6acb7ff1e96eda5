// How many threads a user may ask for. Pure, but for the machine's number of processors.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

// InvalidArgument names the flag and the range: `count` threads are below `least`, or so many more
// than the processors that they would only wait for each other.
absl::Status CheckThreads(absl::string_view flag, int count, int least = 1);

}  // namespace distro
