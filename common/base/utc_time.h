// Times as text: "2026-12-24T00:00:00Z" in files and JSON, "2026-12-24 00:00 UTC" in messages.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// In whole seconds, rounded down.
std::string UtcText(absl::Time time);
// In whole minutes, rounded down.
std::string DateText(absl::Time time);
// Parses the output of UtcText; nullopt for other text.
std::optional<absl::Time> ParseUtcText(absl::string_view text);

}  // namespace distro
