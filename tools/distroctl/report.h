// What a command has to say, for people and for programs. Plain data.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace distro::tools {

// An empty one prints nothing.
struct Report {
  std::string text;     // lines, no newline at the end
  nlohmann::json json;  // the same facts; hashes as 16 hex digits, times in seconds, sizes in bytes
  // The command did its work. Aborted: what it looked at is not as it should be (exit code 5).
  absl::Status verdict = absl::OkStatus();
};

}  // namespace distro::tools
