// What may be shown of a worker's readings: finite, not negative, counters that do not go back within a process. Peers
// send them, so nothing else is trusted. Pure.
#pragma once

#include "distro/v1/telemetry.pb.h"

namespace distro {

// Puts what `before`, the same process's readings as repaired last, says in the place of each value of `telemetry` that is
// not finite or negative, and of each counter below its last value. A histogram with another number of buckets, or
// whose counts do not add up in 64 bits, a version that is not of [0-9a-zA-Z.+-]{1,32}, and GPUs beyond the first 64 or with
// a number that came before are left out. How many values were replaced or left out. Fields that this version does not know
// are left out and not counted: what is kept of a worker is bounded.
int RepairTelemetry(const v1::WorkerTelemetry& before, v1::WorkerTelemetry* telemetry);

}  // namespace distro
