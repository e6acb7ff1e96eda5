// Backend (kernels/backend.h) on a GPU. cuda_kernels.h has the operations themselves.
//
// RowSums adds within a block row in a different order than the CPU (elementwise.h). With n = 64 *
// columns squares per block row, its result is within 2 n * 2^-53 * result of the CPU's. It does
// not depend on how block rows are grouped.
//
// Operations do not allocate and do not wait; Gpu::Finish returns their errors. Not thread-safe, as
// every Backend.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/gpu.h"

namespace distro::cuda {

// Borrows `gpu`, in whose memory the spans are.
std::unique_ptr<Backend> MakeGpuBackend(Gpu* gpu);

}  // namespace distro::cuda
