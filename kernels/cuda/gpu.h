// Runs the operations of cuda_kernels.h on one GPU's stream. The CUDA backend uses the device only
// through this interface. Tests compile the implementation, gpu.cc, over an emulated CUDA runtime.
//
// Everything is enqueued. An error of a launch or a copy is kept until the next Finish. CUDA's own
// errors are sticky: no later operation runs. One caller at a time, from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/block_site.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/device.h"

namespace distro::cuda {

// Contracts as in cuda_kernels.h, arrays in the device's memory.
class Gpu : public Device {
 public:
  bool has_own_memory() const override { return true; }

  virtual void CompressSigns(const SignCompressOptions& options,
                             absl::Span<const CompressSignsTensor> tensors) = 0;
  virtual void FeedbackSigns(const FeedbackSignsArguments& arguments) = 0;
  virtual void ApplyVotes(const ApplyVotesArguments& arguments) = 0;
  virtual void ApplyDeltas(const ApplyDeltasArguments& arguments) = 0;
  virtual void FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                             int64_t elements, uint32_t* not_finite) = 0;
  virtual void CompressDeltas(const CompressDeltasArguments& arguments) = 0;
  virtual void FeedbackDeltas(const FeedbackDeltasArguments& arguments) = 0;
  virtual void DeltaSquares(const float* begin, const float* x, const float* error,
                            int64_t elements, double* moved, double* buffer) = 0;
  virtual void Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                         int64_t elements) = 0;
  virtual void StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                         uint64_t* sum) = 0;
  virtual void SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                            double* row_sums) = 0;
};

// Allocates memory on the current device; returns nullptr when there is none left.
struct GpuAllocator {
  std::function<void*(size_t bytes)> allocate;
  std::function<void(void* memory)> free;
};

// Uses the current device and its `stream`. Without an allocator, CUDA's is used. Only in builds
// with DISTRO_CUDA.
absl::StatusOr<std::unique_ptr<Gpu>> MakeGpu(Stream stream, GpuAllocator allocator = {});

// Number of GPUs that this process can use; 0 without a driver. Only in builds with DISTRO_CUDA.
int DeviceCount();

}  // namespace distro::cuda
