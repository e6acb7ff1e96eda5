// Backend (kernels/backend.h) on a GPU, in two forms. cuda_kernels.h has the operations themselves, asynchronous.
//
// SumOfSquares adds within a block row in an order of its own (elementwise.h): with n = 64 * columns squares a block row its
// result is within 2 n * 2^-53 * result of the CPU's, and the same for every cut into runs of block rows.
//
// A CUDA error in an operation that returns no status ends the process with its name: it is sticky, nothing on this
// device can go on. One caller at a time per object, as for every Backend.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/cuda/cuda_kernels.h"

namespace distro::cuda {

// How many GPUs this process can use; 0 without a driver.
int DeviceCount();

// Spans are device memory of the current device, VotesView too. Compress, Feedback and Lookahead enqueue and return; Apply,
// StateHash and SumOfSquares synchronise `stream`, because they return what the device found. Allocates a few words at
// the start, and for SumOfSquares when a larger matrix comes.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(Stream stream);

// Spans are host memory: every call copies there and back, on the default stream. For tests.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaHostBackend();

}  // namespace distro::cuda
