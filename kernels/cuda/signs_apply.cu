// Apply: votes -> exact integer inverse transform -> sign -> parameters. The reference's bits.
//
//   V <- V * 2^s;  t = (V Q + 32) >> 6;  u = Q^T t;  p <- (p - p*eta_lambda) - eta*sign(u), Q =
//                  round(2^13 * D), int32
//
//   offsets     u32 [count + 1]  in
//   positions   u16 [E]          in        ascending within a block
//   values      i16 [E]          in        V; sum of |V| of a block at most 32767
//   parameters  f32 [elements]   in, out
//
// Launch: 64 threads, one per column, work on one 64 x 64 block, then on the next; 6 such groups
// per multiprocessor. The votes of a block are read once into shared memory, checked and summed.
// The horizontal axis is transformed only for rows with votes, as scalars in registers. Each is
// added to the column at once: 32 products for an odd frequency, 16 otherwise, at most 1536 per
// thread with all 64 rows. Compiled without contraction: three rounded operations per parameter.
//
// Bytes moved per parameter: 4 + 4, and 4*E/4096 + 4/4096 in a block with E votes (32 workers, K =
// 4: 8.1 in total).
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

__device__ constexpr HalfBasis<int32_t> kHalfBasis = MakeHalfBasisQ13();

// 155 registers on compute capability 8.0, 157 on 9.0: 6 groups at a time. A bound of 8 spills on
// 8.0.
__global__ void __launch_bounds__(kThreads, 6) ApplyKernel(ApplyVotesArguments a) {
  __shared__ ApplyScratch scratch;
  CopyHalfBasis(threadIdx.x, kHalfBasis, scratch.basis);
  __syncthreads();
  for (int64_t block = blockIdx.x; block < a.blocks.count; block += gridDim.x) {
    ApplyBlock(DeviceThreads(), a, block, scratch);
  }
}

}  // namespace

absl::Status ApplyVotes(const ApplyVotesArguments& arguments, Stream stream) {
  CheckRange(arguments.matrix, arguments.blocks);
  if (arguments.blocks.count == 0) return absl::OkStatus();
  return Launch("apply", ApplyKernel, arguments.blocks.count, kThreads, stream, arguments);
}

}  // namespace distro::cuda
