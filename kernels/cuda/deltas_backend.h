// DeltaBackend (kernels/deltas_backend.h) on a GPU.
#pragma once

#include <memory>

#include "kernels/cuda/gpu.h"
#include "kernels/deltas_backend.h"

namespace distro::cuda {

// Borrows `gpu`, in whose memory the elements are.
std::unique_ptr<DeltaBackend> MakeGpuDeltaBackend(Gpu* gpu);

}  // namespace distro::cuda
