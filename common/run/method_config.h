// The keys of a run that only one method has: their defaults, ranges, and that the other method
// does not take them. Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "distro/v1/run.pb.h"

namespace distro {

// What deltas allow, in run.json and in what a round says.
inline constexpr uint32_t kMaxLocalSteps = 1000;
// Above 0, so that its product with a unit is exact.
inline constexpr double kLeastOuterRate = 0x1p-82;
inline constexpr double kLargestOuterRate = 2;

// Requires config->method() to be set.
void FillMethodDefaults(v1::RunConfig* config);
// InvalidArgument names the key, the value, the range and the remedy.
absl::Status CheckMethod(const v1::RunConfig& config);

}  // namespace distro
