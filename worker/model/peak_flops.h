// The peak arithmetic rate of a device: the reference of a worker's utilization (docs/metrics.md,
// "Arithmetic").
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/torch/torch.h"

namespace distro::worker {

struct PeakFlopsProbe {
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;
  int64_t size = 512;  // rows and columns
  // Waits until the device has done what it was given; not set: it has when a call returns.
  std::function<absl::Status()> finish = {};
};

// Floating-point operations a second of the fastest of a few products of square matrices, with the
// threads that Torch has been given. Takes some ten milliseconds. ResourceExhausted, Internal:
// Torch's errors.
absl::StatusOr<double> MeasurePeakFlops(const PeakFlopsProbe& probe);

}  // namespace distro::worker
