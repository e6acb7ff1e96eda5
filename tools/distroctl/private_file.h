// Writes files with an operator's secrets. Blocking.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace distro::tools {

// Writes a file readable only by its owner: it has mode 0600 before it gets content and its name.
absl::Status WritePrivate(const std::string& path, const std::string& bytes);

// Replaces a file atomically and keeps its mode; 0600 for a new file.
absl::Status RewriteKeepingMode(const std::string& path, const std::string& bytes);

}  // namespace distro::tools
