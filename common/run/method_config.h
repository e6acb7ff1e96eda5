// The keys of a run that only one method has: their defaults, ranges, and that the other method
// does not take them. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Requires config->method() to be set.
void FillMethodDefaults(v1::RunConfig* config);
// InvalidArgument names the key, the value, the range and the remedy.
absl::Status CheckMethod(const v1::RunConfig& config);

}  // namespace distro
