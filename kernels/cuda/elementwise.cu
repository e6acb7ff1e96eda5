// Lookahead and StateHash. The reference's bits.
//
//   out <- p - eta*sign(m)
//       f32 [elements] in, in, out
//   sum <- sum + sum over i of mix(2^32*(first + i) + bits(p[i]) + G)
//       f32 [elements] in; u64 in, out; modulo 2^64
//
// Launch: 256 threads, 4 elements each at a time, a warp on 128 contiguous bytes. The hash does not
// depend on order: threads add within their warp, warps within their group, and a group does one
// atomic addition.
//
// Bytes moved per parameter: 12 (Lookahead) and 4 (StateHash).
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

constexpr int kGroup = 256;
constexpr int kInFlight = 4;
constexpr int kWarps = kGroup / 32;

__global__ void __launch_bounds__(kGroup, 4)
    LookaheadKernel(float eta, const float* __restrict__ parameters,
                    const float* __restrict__ momentum, float* __restrict__ out, int64_t elements) {
  const int64_t step = int64_t{gridDim.x} * kGroup * kInFlight;
  for (int64_t base = int64_t{blockIdx.x} * kGroup * kInFlight + threadIdx.x; base < elements;
       base += step) {
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      const int64_t i = base + j * kGroup;
      if (i < elements) out[i] = Ahead(eta, parameters[i], momentum[i]);
    }
  }
}

__global__ void __launch_bounds__(kGroup, 4)
    StateHashKernel(uint64_t first_index, const float* __restrict__ parameters, int64_t elements,
                    unsigned long long* sum) {
  __shared__ uint64_t of_warps[kWarps];
  uint64_t own = 0;
  const int64_t step = int64_t{gridDim.x} * kGroup * kInFlight;
  for (int64_t base = int64_t{blockIdx.x} * kGroup * kInFlight + threadIdx.x; base < elements;
       base += step) {
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      const int64_t i = base + j * kGroup;
      if (i < elements) own += HashWord(first_index + i, parameters[i]);
    }
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) own += __shfl_down_sync(0xFFFFFFFF, own, lanes);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < kWarps; ++warp) own += of_warps[warp];
  atomicAdd(sum, static_cast<unsigned long long>(own));
}

int64_t Groups(int64_t elements) {
  return (elements + kGroup * kInFlight - 1) / (kGroup * kInFlight);
}

}  // namespace

absl::Status Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                       int64_t elements, Stream stream) {
  if (elements == 0) return absl::OkStatus();
  return Launch("lookahead", LookaheadKernel, Groups(elements), kGroup, stream, eta, parameters,
                momentum, out, elements);
}

absl::Status StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                       uint64_t* sum, Stream stream) {
  if (elements == 0) return absl::OkStatus();
  return Launch("state hash", StateHashKernel, Groups(elements), kGroup, stream, first_index,
                parameters, elements, reinterpret_cast<unsigned long long*>(sum));
}

}  // namespace distro::cuda
