// Compress and Feedback, each one pass over the momentum
// (docs/decisions/0009-feedback-is-its-own-pass.md).
//
//   Compress   m <- beta*m + eta*(g*scale)   c = D m D^T, D the basis, 64 x 64; the k largest |c|
//              of each block, ascending
//   Feedback   m <- m - D^T pending D
//
//   gradient   f32 [elements]   in        a matrix, row-major
//   momentum   f32 [elements]   in, out
//   positions  u16 [count, k]   out
//   values     f32 [count, k]   out
//
// Launch: 64 threads work on one 64 x 64 block, then on the next; 8 such groups per multiprocessor,
// so that some read memory while others multiply. One thread per column for momentum and the
// vertical transform, one per row for the horizontal transform: a warp reads 128 contiguous bytes
// of a row. 592 operations per axis, immediate operands, 64 samples in registers. Compress takes
// the blocks of up to 48 tensors in a launch; edges have a kernel of their own
// (docs/decisions/0030-compress-takes-whole-blocks-of-all-tensors.md).
//
// Bytes moved per parameter: gradient 4 (Compress), momentum 4 + 4; 6*k/4096 for the entries.
// Shared memory per element: 4 written after the first axis, 4 read, 4 written after the second,
// k/64 rows read by the selection.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tensor_table.h"

namespace distro::cuda {
namespace {

__device__ constexpr HalfBasis<float> kHalfBasis = MakeHalfBasisF32();

using CompressTable = TensorTable<CompressSignsTensor>;

template <bool kWhole>
__global__ void __launch_bounds__(kThreads, 8)
    CompressKernel(SignCompressOptions options, const __grid_constant__ CompressTable table) {
  __shared__ CompressScratch scratch;
  EachBlock(table, blockIdx.x, gridDim.x, [&](const CompressSignsTensor& tensor, int64_t block) {
    CompressBlock<kWhole>(DeviceThreads(), options, tensor, block, scratch);
  });
}

__global__ void __launch_bounds__(kThreads, 8) FeedbackKernel(FeedbackSignsArguments a) {
  __shared__ HalfBasis<float> basis;
  CopyHalfBasis(threadIdx.x, kHalfBasis, basis);
  __syncthreads();
  for (int64_t block = blockIdx.x; block < a.blocks.count; block += gridDim.x) {
    FeedbackColumn(a, block, threadIdx.x, basis);
  }
}

}  // namespace

absl::Status CompressSigns(const SignCompressOptions& options,
                           absl::Span<const CompressSignsTensor> tensors, Stream stream) {
  CheckShape(options.k >= 1 && options.k <= kBlockElements, "k is outside 1..4096");
  for (const CompressSignsTensor& tensor : tensors) CheckRange(tensor.matrix, tensor.blocks);
  DISTRO_RETURN_IF_ERROR(LaunchTables(tensors, MayHaveWholeBlocks, [&](const CompressTable& table) {
    return Launch("compress", CompressKernel<true>, table.Blocks(), kThreads, stream, options,
                  table);
  }));
  return LaunchTables(tensors, MayHaveEdges, [&](const CompressTable& table) {
    return Launch("compress edges", CompressKernel<false>, table.Blocks(), kThreads, stream,
                  options, table);
  });
}

absl::Status FeedbackSigns(const FeedbackSignsArguments& arguments, Stream stream) {
  CheckRange(arguments.matrix, arguments.blocks);
  CheckShape(arguments.pending.k >= 1 && arguments.pending.k <= kBlockElements,
             "k is outside 1..4096");
  if (arguments.blocks.count == 0) return absl::OkStatus();
  return Launch("feedback", FeedbackKernel, arguments.blocks.count, kThreads, stream, arguments);
}

}  // namespace distro::cuda
