// Checks of a run's configuration. Pure functions; InvalidArgument starts with the key.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace distro {

inline absl::Status RefuseKey(absl::string_view key, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", why));
}

template <typename T>
absl::Status InRange(absl::string_view key, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();  // false for NaN
  return RefuseKey(key, absl::StrCat(value, " is outside ", low, " to ", high));
}

// 0 to below 1, also after conversion to the 32-bit float that is sent.
inline absl::Status CheckDecay(absl::string_view key, double value) {
  if (value >= 0 && static_cast<float>(value) < 1) return absl::OkStatus();
  return RefuseKey(key, absl::StrCat(value, " is outside 0 to below 1 (as a 32-bit float)"));
}

}  // namespace distro
