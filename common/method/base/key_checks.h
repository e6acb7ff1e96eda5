// Checks of a run's configuration. Pure functions; InvalidArgument starts with the key.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_util.h"
#include "distro/v1/run.pb.h"

namespace distro {

inline constexpr uint32_t kMaxKept = 4096;      // positions of a block
inline constexpr uint32_t kMaxWorkers = 32767;  // votes of a block, and so workers
inline constexpr uint32_t kDefaultMaxWorkers = 1024;

template <typename T>
absl::Status InRange(absl::string_view key, T value, T low, T high) {
  if (value >= low && value <= high) return absl::OkStatus();  // false for NaN
  return BadField(key, absl::StrCat(value, " is outside ", low, " to ", high));
}

// 0 to below 1, also after conversion to the 32-bit float that is sent.
inline absl::Status CheckDecay(absl::string_view key, double value) {
  if (value >= 0 && static_cast<float>(value) < 1) return absl::OkStatus();
  return BadField(key, absl::StrCat(value, " is outside 0 to below 1 (as a 32-bit float)"));
}

// Refuses the given keys if they are set, because they have no meaning with `method`.
inline absl::Status RefuseSet(const v1::RunConfig& config,
                              std::initializer_list<absl::string_view> keys,
                              absl::string_view method) {
  for (const absl::string_view key : keys) {
    const auto* const field = v1::RunConfig::descriptor()->FindFieldByName(std::string(key));
    if (!config.GetReflection()->HasField(config, field)) continue;
    return BadField(key, absl::StrCat("has no meaning with ", method, ": remove it"));
  }
  return absl::OkStatus();
}

}  // namespace distro
