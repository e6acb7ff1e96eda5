// FeedbackDeltas: subtracts the entries that a deltas result included from the error buffer
// (docs/algorithm.md, "Deltas").
//
//   q            sgn * M(c) * 2^-44 at the positions of a record that the result has too
//   elements     e <- e - q
//   frequencies  e <- e - D^T q D of every element of a block with such positions
//
//   sent.positions, signs  u16, i8 [count, k]  in
//   sent.codes             u8 [count]          in
//   offsets                u32 [count + 1]     in   of the result
//   positions              u16 [E]             in
//   error                  f32 [elements]      in, out
//   returned               u64                 in, out
//
// Launch: 64 threads work on one 64 x 64 block, then on the next. They set one bit in shared memory
// for each position of the result; then each thread looks up every 64th entry of the record. For
// frequencies, a thread holds a column of the inverse, as in Feedback. The count is kept in shared
// memory and added once per group.
//
// Bytes moved per parameter, in a block with E entries of the result: (3*k + 2*E + 5)/4096, and for
// elements 8 per returned position (in sectors of 32 bytes), for frequencies 4 + 4.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/deltas_feedback_block.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

__device__ constexpr HalfBasis<float> kHalfBasis = MakeHalfBasisF32();

__global__ void __launch_bounds__(kThreads, 16) FeedbackElementsKernel(FeedbackDeltasArguments a) {
  __shared__ FeedbackDeltasScratch scratch;
  if (threadIdx.x == 0) scratch.all_returned = 0;
  for (int64_t block = blockIdx.x; block < a.blocks.count; block += gridDim.x)
    FeedbackElements(DeviceThreads(), a, block, scratch);
  if (threadIdx.x == 0) DeviceThreads().Add(a.returned, scratch.all_returned);
}

__global__ void __launch_bounds__(kThreads, 8)
    FeedbackFrequenciesKernel(FeedbackDeltasArguments a) {
  __shared__ FeedbackFrequenciesScratch scratch;
  CopyHalfBasis(threadIdx.x, kHalfBasis, scratch.basis);
  if (threadIdx.x == 0) scratch.common.all_returned = 0;
  __syncthreads();
  for (int64_t block = blockIdx.x; block < a.blocks.count; block += gridDim.x)
    FeedbackFrequencies(DeviceThreads(), a, block, scratch);
  if (threadIdx.x == 0) DeviceThreads().Add(a.returned, scratch.common.all_returned);
}

}  // namespace

absl::Status FeedbackDeltas(const FeedbackDeltasArguments& arguments, Stream stream) {
  CheckRange(arguments.matrix, arguments.blocks);
  CheckShape(arguments.sent.k >= 1 && arguments.sent.k <= kBlockElements, "k is outside 1..4096");
  if (arguments.blocks.count == 0) return absl::OkStatus();
  const auto kernel = arguments.as_dct ? FeedbackFrequenciesKernel : FeedbackElementsKernel;
  return Launch("feedback of deltas", kernel, arguments.blocks.count, kThreads, stream, arguments);
}

}  // namespace distro::cuda
