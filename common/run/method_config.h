// The keys of a run that belong to one method: defaults, ranges, and their refusal with the other
// method. Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Limits of the deltas method, in run.json and in the messages of a round.
inline constexpr uint32_t kMaxLocalSteps = 1000;
// Large enough that its product with a unit is exact.
inline constexpr double kLeastOuterRate = 0x1p-82;
inline constexpr double kLargestOuterRate = 2;

// Requires config->method() to be set.
void FillMethodDefaults(v1::RunConfig* config);
// InvalidArgument names the key, the value, the range and the remedy.
absl::Status CheckMethod(const v1::RunConfig& config);

}  // namespace distro
