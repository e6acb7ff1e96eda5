// Files with secrets of an operator. Blocking.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace distro::tools {

// Writes a file that only its owner ever sees: it has mode 0600 before it has bytes and its name.
absl::Status WritePrivate(const std::string& path, const std::string& bytes);

// Writes a file anew, whole or not at all, with the mode that it has; 0600 where there is none.
absl::Status RewriteKeepingMode(const std::string& path, const std::string& bytes);

}  // namespace distro::tools
