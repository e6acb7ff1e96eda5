// Backend (kernels/backend.h) on a GPU, in two forms. cuda_kernels.h has the operations themselves.
//
// SumOfSquares adds within a block row in an order of its own (elementwise.h): with n = 64 * columns squares a block row its
// result is within 2 n * 2^-53 * result of the CPU's, and the same for every cut into runs of block rows.
//
// The Enqueue functions, Compress, Feedback and Lookahead enqueue and return, allocate nothing and never wait: what went wrong is
// told by the Gpu's Finish. Apply, StateHash and SumOfSquares finish the Gpu, because they return what the device found; where
// there is no status for it, a CUDA error ends the process with its name. One caller at a time per object, as for every Backend.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/cuda/gpu.h"

namespace distro::cuda {

// Spans are memory of the Gpu, VotesView's and those that Enqueue functions write too. Borrows `gpu`, or owns it.
std::unique_ptr<Backend> MakeGpuBackend(Gpu* gpu);
std::unique_ptr<Backend> MakeGpuBackend(std::unique_ptr<Gpu> gpu);

// Spans are host memory: every call copies there and back, and finishes. For tests.
std::unique_ptr<Backend> MakeHostBackend(std::unique_ptr<Gpu> gpu);

// How many GPUs this process can use; 0 without a driver. Only in builds with DISTRO_CUDA.
int DeviceCount();

}  // namespace distro::cuda
