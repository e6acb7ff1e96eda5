// Includes Torch's CUDA headers: streams, caching allocator, cuBLAS's workspaces. The only file
// that does. Only in builds with DISTRO_CUDA.
#pragma once

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/env.h>
#include <cuda_runtime.h>

#include "worker/torch/torch.h"
