// Backend (kernels/backend.h) on a GPU. cuda_kernels.h has the operations themselves.
//
// RowSums adds within a block row in an order of its own (elementwise.h): with n = 64 * columns
// squares a block row its result is within 2 n * 2^-53 * result of the CPU's, and the same for
// every cut into runs of block rows.
//
// Operations allocate nothing and never wait: what went wrong is told by the Gpu's Finish. One
// caller at a time per object, as for every Backend.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/gpu.h"

namespace distro::cuda {

// Borrows `gpu`, in whose memory the spans are.
std::unique_ptr<Backend> MakeGpuBackend(Gpu* gpu);

// How many GPUs this process can use; 0 without a driver. Only in builds with DISTRO_CUDA.
int DeviceCount();

}  // namespace distro::cuda
