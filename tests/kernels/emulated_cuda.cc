#include "tests/kernels/emulated_cuda.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/block_site.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/launch.h"

namespace distro::testing {
namespace {

void Expect(const absl::Status& launched) {
  CheckShape(launched.ok(), "the emulation refuses a launch");
}

// What the tests of single steps run.
void SelectKernel(const float* coefficients, int k, uint16_t* positions, float* values) {
  __shared__ cuda::CompressScratch scratch;
  const cuda::DeviceThreads threads;
  threads.Each([&](int row) {
    uint32_t& largest = scratch.select.row_maxima[row] = 0;
    for (int i = 0; i < kBlockSide; ++i) {
      const float value = coefficients[row * kBlockSide + i];
      scratch.tile.at[row * cuda::kTileRow + i] = value;
      largest = std::max(largest, cuda::Magnitude(value));
    }
    if (row == 0) cuda::ResetSelect(scratch.select);
  });
  cuda::SelectLargest(threads, scratch.tile, k, scratch.select, [&](int, int slot, int position) {
    positions[slot] = static_cast<uint16_t>(position);
    values[slot] = scratch.tile.at[cuda::IndexOf(position)];
  });
}

class EmulatedGpu final : public EmulatedDevice {
 public:
  EmulatedGpu(EmulatedOrder order, int multiprocessors)
      : EmulatedDevice(order),
        stream_({.multiprocessors = multiprocessors,
                 .enqueue = [this](std::function<void()> work) { Do(std::move(work)); }}) {}

  void Compress(const CompressOptions& options,
                absl::Span<const cuda::CompressTensor> tensors) override {
    Expect(cuda::Compress(options, tensors, &stream_));
  }
  void Feedback(const cuda::FeedbackArguments& arguments) override {
    Expect(cuda::Feedback(arguments, &stream_));
  }
  void Apply(const cuda::ApplyArguments& arguments) override {
    Expect(cuda::Apply(arguments, &stream_));
  }
  void ApplyDeltas(const cuda::ApplyDeltasArguments& arguments) override {
    Expect(cuda::ApplyDeltas(arguments, &stream_));
  }
  void FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                     int64_t elements, uint32_t* not_finite) override {
    Expect(cuda::FindNotFinite(beta, begin, x, error, elements, not_finite, &stream_));
  }
  void CompressDeltas(const cuda::CompressDeltasArguments& arguments) override {
    Expect(cuda::CompressDeltas(arguments, &stream_));
  }
  void FeedbackDeltas(const cuda::FeedbackDeltasArguments& arguments) override {
    Expect(cuda::FeedbackDeltas(arguments, &stream_));
  }
  void Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                 int64_t elements) override {
    Expect(cuda::Lookahead(eta, parameters, momentum, out, elements, &stream_));
  }
  void StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                 uint64_t* sum) override {
    Expect(cuda::StateHash(first_index, parameters, elements, sum, &stream_));
  }
  void SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                    double* row_sums) override {
    Expect(cuda::SumOfSquares(matrix, gradient, workspace, row_sums, &stream_));
  }

 private:
  EmulatedStream stream_;
};

}  // namespace

std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(EmulatedOrder order, int multiprocessors) {
  return std::make_unique<EmulatedGpu>(order, multiprocessors);
}

std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend(int multiprocessors) {
  std::unique_ptr<cuda::Gpu> gpu = MakeEmulatedGpu(EmulatedOrder::kAtOnce, multiprocessors);
  std::unique_ptr<Backend> backend = cuda::MakeGpuBackend(gpu.get());
  return std::make_unique<WaitingBackend>(std::move(backend), std::move(gpu));
}

void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u) {
  const auto scratch = std::make_unique<cuda::ApplyScratch>();
  scratch->basis = cuda::MakeHalfBasisQ13();
  for (int i = 0; i < votes.count; ++i)
    scratch->entries[i] = cuda::EntryOf(votes.positions[i], votes.values[i]);
  for (int c = 0; c < kBlockSide; ++c) {
    cuda::ColumnSums sums;
    cuda::InverseColumn(*scratch, votes.count, votes.shift, c, sums);
    for (int r = 0; r < 32; ++r) {
      u[r * kBlockSide + c] = cuda::EvenSum(sums, r) + sums.odd[r];
      u[(63 - r) * kBlockSide + c] = cuda::EvenSum(sums, r) - sums.odd[r];
    }
  }
}

void EmulatedSelectLargest(const float* coefficients, int k, uint16_t* positions, float* values) {
  EmulatedStream stream = {.multiprocessors = 1, .enqueue = [](const auto& work) { work(); }};
  Expect(cuda::Launch("select", SelectKernel, 1, cuda::kThreads, &stream, coefficients, k,
                      positions, values));
}

void EmulatedForwardTransform(const float* x, float* c) {
  float samples[kBlockSide];
  std::copy_n(x, kBlockSide, samples);
  cuda::ForwardTransform(samples, [c](int f, float value) { c[f] = value; });
}

}  // namespace distro::testing
