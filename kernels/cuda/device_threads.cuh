// `Threads` of block.h on the device: the threads of the CUDA block. Only kernels create one. The
// functions also compile for the host, because constexpr templates call them, but never run there.
#pragma once

#include <cstdint>

namespace distro::cuda {

struct DeviceThreads {
  template <typename F>
  __host__ __device__ void Each(const F& f) const {
#ifdef __CUDA_ARCH__
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
#endif
  }
  __host__ __device__ uint32_t Add(uint32_t* at, uint32_t value) const {
#ifdef __CUDA_ARCH__
    return atomicAdd(at, value);
#else
    return *at + value;
#endif
  }
  __host__ __device__ void Store(uint32_t* at, uint32_t value) const {
#ifdef __CUDA_ARCH__
    atomicExch(at, value);
#endif
  }
  __host__ __device__ void Add(uint64_t* at, uint64_t value) const {
#ifdef __CUDA_ARCH__
    atomicAdd(reinterpret_cast<unsigned long long*>(at), value);
#endif
  }
};

}  // namespace distro::cuda
