// A worker's readings as its heartbeats carry them: how durations are counted, and what a receiver
// may show of them. Pure.
#pragma once

#include <array>

#include "absl/time/time.h"
#include "distro/v1/telemetry.pb.h"

namespace distro {

// Leaves what is finite, not negative, and of counters what does not go back within a process;
// peers send readings, so nothing else is trusted. Puts what `before`, the same process's readings
// as repaired last, says in the place of each value of `telemetry` that is not finite or negative,
// and of each counter below its last value. A histogram with another number of buckets, or whose
// counts do not add up in 64 bits, a version that is not of [0-9a-zA-Z.+-]{1,32}, and GPUs beyond
// the first 64 or with a number that came before are left out. How many values were replaced or
// left out. Fields that this version does not know are left out and not counted: what is kept of a
// worker is bounded.
int RepairTelemetry(const v1::WorkerTelemetry& before, v1::WorkerTelemetry* telemetry);

// Upper bounds in seconds of the buckets of v1::DurationHistogram, for everything that a round
// waits for (docs/metrics.md, "Rules"); one more bucket takes what is above.
inline constexpr std::array<double, 12> kDurationBounds = {0.05, 0.1, 0.25, 0.5, 1,  2.5,
                                                           5,    10,  20,   40,  80, 160};
inline constexpr int kDurationBuckets = static_cast<int>(kDurationBounds.size()) + 1;

// Counts one. Requires a duration that is finite and not negative.
void AddDuration(absl::Duration duration, v1::DurationHistogram* histogram);

}  // namespace distro
