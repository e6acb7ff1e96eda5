// What a command has to say, for people and for programs, and where it says it.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace distro::tools {

// Plain data.
struct Report {
  std::string text;     // lines, no newline at the end
  nlohmann::json json;  // the same facts; hashes as 16 hex digits, times in seconds, sizes in bytes
  // The command did its work. Aborted: what it looked at is not as it should be (exit code 5).
  absl::Status verdict = absl::OkStatus();
};

// Where a command writes while it runs, and how. Not thread-safe.
struct Console {
  std::function<void(absl::string_view line)> progress;  // for people, standard error
  std::ostream* out = nullptr;                           // borrowed
  std::string output = "text";                           // --output

  bool json() const { return output == "json"; }
  // Writes the report. 0, or the status that it has, or came instead of it.
  absl::StatusOr<int> Show(const absl::StatusOr<Report>& report) const;
};

}  // namespace distro::tools
