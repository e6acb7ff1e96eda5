// ApplyDeltas: a result of deltas -> parameters. The reference's bits.
//
//   elements     p <- p - sgn * (float(R) * (alpha * 2^-44)) of each entry
//   frequencies  u = IDCTint(V);  p <- p - float(u) * w of every element of a block with entries
//
//   offsets                  u32 [count + 1]  in
//   positions, signs, levels u16, i8, u8 [E]  in        positions ascending within a block
//   codes                    u8 [count]       in
//   parameters               f32 [elements]   in, out
//
// Launch: as Apply: 64 threads work on one 64 x 64 block, then on the next; 6 such groups per
// multiprocessor. Entries are read once into shared memory, checked and counted by level. For
// frequencies, each then becomes V, and the transform is that of Apply. Compiled without
// contraction.
//
// Bytes moved per parameter, in a block with E entries: 4*E/4096 + 1/4096, and 4 + 4 for
// frequencies or 8*E/4096 (in sectors of 32 bytes) for elements.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/deltas_apply_block.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

__device__ constexpr HalfBasis<int32_t> kHalfBasis = MakeHalfBasisQ13();

__global__ void __launch_bounds__(kThreads, 6) ApplyDeltasKernel(ApplyDeltasArguments a) {
  __shared__ ApplyDeltasScratch scratch;
  CopyHalfBasis(threadIdx.x, kHalfBasis, scratch.apply.basis);
  __syncthreads();
  for (int64_t block = blockIdx.x; block < a.blocks.count; block += gridDim.x)
    ApplyDeltasBlock(DeviceThreads(), a, block, scratch);
}

}  // namespace

absl::Status ApplyDeltas(const ApplyDeltasArguments& arguments, Stream stream) {
  CheckRange(arguments.matrix, arguments.blocks);
  if (arguments.blocks.count == 0) return absl::OkStatus();
  return Launch("apply deltas", ApplyDeltasKernel, arguments.blocks.count, kThreads, stream,
                arguments);
}

}  // namespace distro::cuda
