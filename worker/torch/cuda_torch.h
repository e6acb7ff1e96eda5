// Includes Torch's CUDA headers: streams and caching allocator. The only file that does. Only in
// builds with DISTRO_CUDA.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include "worker/torch/torch.h"
