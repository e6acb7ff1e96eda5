// A worker's readings in its heartbeats: counts durations, and repairs readings that a receiver
// must not show. Pure.
#pragma once

#include <array>

#include "absl/time/time.h"
#include "distro/v1/telemetry.pb.h"

namespace distro {

// Repairs untrusted readings. `before` has the same process's last repaired readings. Its value
// replaces each value of `telemetry` that is negative or not finite, and each counter that has
// decreased. Removes histograms with a wrong number of buckets or whose counts overflow 64 bits, a
// version that is not [0-9a-zA-Z.+-]{1,32}, GPUs beyond the first 64, and GPUs with a repeated
// number. Returns how many values were replaced or removed. Unknown fields are removed too, but not
// counted, so that the memory per worker is bounded.
int RepairTelemetry(const v1::WorkerTelemetry& before, v1::WorkerTelemetry* telemetry);

// Upper bounds in seconds of the buckets of v1::DurationHistogram, for everything that a round
// waits for (docs/metrics.md, "Rules"); one more bucket counts larger values.
inline constexpr std::array<double, 12> kDurationBounds = {0.05, 0.1, 0.25, 0.5, 1,  2.5,
                                                           5,    10,  20,   40,  80, 160};
inline constexpr int kDurationBuckets = static_cast<int>(kDurationBounds.size()) + 1;

// Counts one duration. Requires that it is finite and not negative.
void AddDuration(absl::Duration duration, v1::DurationHistogram* histogram);

}  // namespace distro
