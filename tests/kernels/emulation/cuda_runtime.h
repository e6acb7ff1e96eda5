// What nvcc and CUDA's header of this name give to kernels/cuda/*.cu, on the CPU: the built-ins,
// over group.h, and launches. Included before everything else, as nvcc does.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tests/kernels/emulation/cuda_runtime_api.h"
#include "tests/kernels/emulation/group.h"

#define __CUDA_ARCH__ 800
#define __device__
#define __global__
#define __grid_constant__
#define __host__
#define __launch_bounds__(...)
#define __shared__ DISTRO_SHARED_MEMORY

namespace distro::cuda {

using testing::blockIdx;
using testing::gridDim;
using testing::threadIdx;

inline void __syncthreads() { testing::AwaitGroup(); }

inline uint64_t __shfl_down_sync(uint32_t /*of whole warps*/, uint64_t value, unsigned lanes) {
  return testing::ValueOfLaneAbove(value, lanes);
}

template <typename T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  ++testing::atomic_additions;
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

template <typename T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

template <typename T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}

struct cudaLaunchConfig_t {
  testing::KernelIndex gridDim, blockDim;
  EmulatedStream* stream;
};
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               const Arguments&... arguments) {
  return LaunchOnStream(
      config->stream, config->gridDim.x, config->blockDim.x,
      [kernel, ... values = static_cast<Parameters>(arguments)] { kernel(values...); });
}

}  // namespace distro::cuda
