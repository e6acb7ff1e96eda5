// Moments as files and JSON carry them: "2026-12-24T00:00:00Z". Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// In whole seconds, rounded down.
std::string UtcText(absl::Time time);
// Of what UtcText writes; none: it is no such text.
std::optional<absl::Time> ParseUtcText(absl::string_view text);

}  // namespace distro
