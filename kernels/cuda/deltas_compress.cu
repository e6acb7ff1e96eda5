// CompressDeltas and FindNotFinite: adds a round's movement of a worker's parameters to its error
// buffer; the largest values of each block become its record (docs/algorithm.md, "Deltas").
//
//   FindNotFinite   *not_finite <- 1 where some beta*e + (begin - x) is no finite number
//   CompressDeltas  e <- a = beta*e + (begin - x);  of each block the K positions of the largest
//                   |a|, or |D a D^T|, ascending, their signs and one scale code
//
//   begin, x   f32 [elements]  in
//   error      f32 [elements]  in, out
//   positions  u16 [count, k]  out
//   signs      i8 [count, k]   out
//   codes      u8 [count]      out
//
// Launch: 64 threads work on one 64 x 64 block, then on the next; 10 such groups per
// multiprocessor, so that some read memory while others select. One thread per column while the
// buffer is formed, 24 loads in flight; one thread per row for the rows' maxima. For frequencies,
// the transforms of Compress run in between. FindNotFinite: 256 threads, 4 elements each at a time.
// Compiled without contraction.
//
// Bytes moved per parameter: begin 4, x 4, error 4 + 4; (3*k + 1)/4096 for the record.
// FindNotFinite: 12. Shared memory per element: 4 written, 4 read, k/64 rows read by the selection;
// for frequencies, 4 more written and read for each axis.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/deltas_compress_block.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

constexpr int kGroup = 256;
constexpr int kInFlight = 4;

template <bool kAsDct, bool kWhole>
__global__ void __launch_bounds__(kThreads, 10) CompressDeltasKernel(CompressDeltasArguments a) {
  __shared__ CompressDeltasScratch scratch;
  for (int64_t block = blockIdx.x; block < a.blocks.count; block += gridDim.x)
    CompressDeltasBlock<kAsDct, kWhole>(DeviceThreads(), a, block, scratch);
}

__global__ void __launch_bounds__(kGroup, 4)
    FindNotFiniteKernel(float beta, const float* __restrict__ begin, const float* __restrict__ x,
                        const float* __restrict__ error, int64_t elements, uint32_t* not_finite) {
  bool finite = true;
  const int64_t step = int64_t{gridDim.x} * kGroup * kInFlight;
  for (int64_t base = int64_t{blockIdx.x} * kGroup * kInFlight + threadIdx.x; base < elements;
       base += step) {
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      const int64_t i = base + j * kGroup;
      if (i < elements) finite &= IsFinite(FormedDelta(beta, begin[i], x[i], error[i]));
    }
  }
  if (!finite) DeviceThreads().Store(not_finite, 1);
}

}  // namespace

absl::Status CompressDeltas(const CompressDeltasArguments& arguments, Stream stream) {
  CheckRange(arguments.matrix, arguments.blocks);
  CheckShape(arguments.k >= 1 && arguments.k <= kBlockElements, "k is outside 1..4096");
  return arguments.as_dct ? LaunchVersions("compress deltas", CompressDeltasKernel<true, true>,
                                           CompressDeltasKernel<true, false>, arguments, stream)
                          : LaunchVersions("compress deltas", CompressDeltasKernel<false, true>,
                                           CompressDeltasKernel<false, false>, arguments, stream);
}

absl::Status FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                           int64_t elements, uint32_t* not_finite, Stream stream) {
  if (elements == 0) return absl::OkStatus();
  const int64_t groups = (elements + kGroup * kInFlight - 1) / (kGroup * kInFlight);
  return Launch("find not finite", FindNotFiniteKernel, groups, kGroup, stream, beta, begin, x,
                error, elements, not_finite);
}

}  // namespace distro::cuda
