// What the processor does at most: the yardstick of a worker's arithmetic (docs/metrics.md, "Arithmetic").
#pragma once

#include "absl/status/statusor.h"

namespace distro::worker {

// Floating-point operations a second of the fastest of a few products of 512 x 512 matrices in float32, with the threads
// that Torch has been given. Takes some ten milliseconds. ResourceExhausted, Internal: Torch's errors.
absl::StatusOr<double> MeasurePeakFlops();

}  // namespace distro::worker
