// Times in files and JSON as text: "2026-12-24T00:00:00Z". Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// In whole seconds, rounded down.
std::string UtcText(absl::Time time);
// Parses the output of UtcText; nullopt for other text.
std::optional<absl::Time> ParseUtcText(absl::string_view text);

}  // namespace distro
