// The door to what Torch has for CUDA: its streams and its caching allocator. Only in builds with
// DISTRO_CUDA.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include "worker/torch/torch.h"
