// Tries at the start of a long job what it needs at its end: whether its results can be written.
// Both leave everything as it was, but for missing parents of a folder. Thread-safe; blocking.
//
// InvalidArgument: nothing can be written under this name. ResourceExhausted: its disk is full. The
// message names the thing and the remedy.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace distro {

// A folder, which need not exist, and files in it.
absl::Status TryOutputFolder(const std::string& path);

// A file that is replaced as by WriteFileAtomically. Its folder has to exist.
absl::Status TryOutputFile(const std::string& path);

}  // namespace distro
