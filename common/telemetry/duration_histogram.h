// Durations counted as v1::DurationHistogram has them: the buckets of everything that a round waits for
// (docs/metrics.md, "Rules"). Pure.
#pragma once

#include <array>

#include "absl/time/time.h"
#include "distro/v1/telemetry.pb.h"

namespace distro {

// Upper bounds in seconds; one more bucket takes what is above.
inline constexpr std::array<double, 12> kDurationBounds = {0.05, 0.1, 0.25, 0.5, 1,  2.5,
                                                           5,    10,  20,   40,  80, 160};
inline constexpr int kDurationBuckets = static_cast<int>(kDurationBounds.size()) + 1;

// Counts one. Requires a duration that is finite and not negative.
void AddDuration(absl::Duration duration, v1::DurationHistogram* histogram);

}  // namespace distro
