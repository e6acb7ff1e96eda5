// What nvcc and CUDA's header of this name give to kernels/cuda/*.cu, on the CPU: the built-ins,
// over group.h, and what launch.h uses of the runtime. Included before everything else, as nvcc
// does.
//
// All is in distro::cuda, and streams are of another type, so that functions over them have other
// symbols than the real ones and can be linked beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "tests/kernels/emulation/group.h"

#define CUstream_st EmulatedStream
#define __CUDA_ARCH__ 800
#define __device__
#define __global__
#define __grid_constant__
#define __host__
#define __launch_bounds__(...)
#define __shared__ DISTRO_SHARED_MEMORY

// Of a device that has `multiprocessors` of them. `enqueue` decides when work runs.
struct EmulatedStream {
  int multiprocessors;
  std::function<void(std::function<void()>)> enqueue;
};

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
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

template <typename T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}

enum cudaError_t { cudaSuccess };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
inline const char* cudaGetErrorName(cudaError_t) { return "none"; }
inline const char* cudaGetErrorString(cudaError_t) { return "no error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

// There is a device for each number of multiprocessors, which is also its own number.
inline cudaError_t cudaStreamGetDevice(const EmulatedStream* stream, int* device) {
  *device = stream->multiprocessors;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device) {
  *value = device;
  return cudaSuccess;
}

struct cudaLaunchConfig_t {
  testing::KernelIndex gridDim, blockDim;
  EmulatedStream* stream;
};
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               const Arguments&... arguments) {
  config->stream->enqueue([kernel, groups = config->gridDim.x, threads = config->blockDim.x,
                           ... values = static_cast<Parameters>(arguments)] {
    testing::RunKernel(groups, threads, [&] { kernel(values...); });
  });
  return cudaSuccess;
}

}  // namespace distro::cuda
