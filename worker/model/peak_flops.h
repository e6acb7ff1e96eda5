// Measures the peak arithmetic rate of a device, the reference for a worker's utilization
// (docs/metrics.md, "Arithmetic").
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
  // Waits until the device's work is done; not set if calls are synchronous.
  std::function<absl::Status()> finish = {};
};

// Floating-point operations per second of the fastest of a few products of square matrices, with
// Torch's current threads. Takes tens of milliseconds. ResourceExhausted, Internal: Torch's errors.
absl::StatusOr<double> MeasurePeakFlops(const PeakFlopsProbe& probe);

}  // namespace distro::worker
