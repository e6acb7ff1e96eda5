#include "tests/kernels/emulated_cuda.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/block_site.h"
#include "kernels/cpu/exact.h"
#include "kernels/cuda/apply_block.h"
#include "kernels/cuda/apply_deltas_block.h"
#include "kernels/cuda/compress_block.h"
#include "kernels/cuda/compress_deltas_block.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/feedback_deltas_block.h"

namespace distro::testing {
namespace {

using cuda::ApplyArguments;
using cuda::CompressArguments;
using cuda::HalfBasis;
using cuda::kThreads;

// Runs the last thread first, so that code which relies on the order of threads fails.
class HostThreads {
 public:
  explicit HostThreads(int count) : count_(count) {}
  template <typename F>
  void Each(const F& f) const {
    for (int thread = count_ - 1; thread >= 0; --thread) f(thread);
  }
  template <typename T>
  T Add(T* at, std::type_identity_t<T> value) const {
    const T before = *at;
    *at += value;
    return before;
  }

 private:
  const int count_;
};

constexpr HalfBasis<float> kHalfBasis = cuda::MakeHalfBasisF32();
constexpr HalfBasis<int32_t> kHalfBasisQ13 = cuda::MakeHalfBasisQ13();

// As a kernel finds shared memory: any bits.
template <typename T>
std::unique_ptr<T> Scratch() {
  auto scratch = std::make_unique<T>();
  std::memset(static_cast<void*>(scratch.get()), 0xFF, sizeof(T));
  return scratch;
}

void CompressAll(const CompressArguments& arguments) {
  const auto scratch = Scratch<cuda::CompressScratch>();
  const HostThreads threads(kThreads);
  for (int64_t b = 0; b < arguments.blocks.count; ++b) {
    cuda::CompressBlock(threads, arguments, b, *scratch);
  }
}

void ApplyAll(const ApplyArguments& arguments) {
  const DefaultFloatEnvironment environment;
  const auto scratch = Scratch<cuda::ApplyScratch>();
  const HostThreads threads(kThreads);
  threads.Each([&](int thread) { CopyHalfBasis(thread, kHalfBasisQ13, scratch->basis); });
  for (int64_t b = 0; b < arguments.blocks.count; ++b)
    cuda::ApplyBlock(threads, arguments, b, *scratch);
}

void ApplyDeltasAll(const cuda::ApplyDeltasArguments& arguments) {
  const DefaultFloatEnvironment environment;
  const auto scratch = Scratch<cuda::ApplyDeltasScratch>();
  const HostThreads threads(kThreads);
  threads.Each([&](int thread) { CopyHalfBasis(thread, kHalfBasisQ13, scratch->apply.basis); });
  for (int64_t b = 0; b < arguments.blocks.count; ++b)
    cuda::ApplyDeltasBlock(threads, arguments, b, *scratch);
}

template <bool kAsDct>
void CompressDeltasAll(const cuda::CompressDeltasArguments& arguments) {
  const DefaultFloatEnvironment environment;
  const auto scratch = Scratch<cuda::CompressDeltasScratch>();
  for (int64_t b = 0; b < arguments.blocks.count; ++b)
    cuda::CompressDeltasBlock<kAsDct>(HostThreads(kThreads), arguments, b, *scratch);
}

void FeedbackDeltasAll(const cuda::FeedbackDeltasArguments& arguments) {
  const DefaultFloatEnvironment environment;
  const auto scratch = Scratch<cuda::FeedbackFrequenciesScratch>();
  scratch->basis = kHalfBasis;
  scratch->common.all_returned = 0;
  for (int64_t b = 0; b < arguments.blocks.count; ++b) {
    if (arguments.as_dct)
      cuda::FeedbackFrequencies(HostThreads(kThreads), arguments, b, *scratch);
    else
      cuda::FeedbackElements(HostThreads(kThreads), arguments, b, scratch->common);
  }
  *arguments.returned += scratch->common.all_returned;
}

// As RowsKernel and PiecesKernel of sum_of_squares.cu.
void SumRows(const MatrixShape& matrix, const float* gradient, double* row_sums) {
  const int64_t row = kBlockSide * matrix.cols;
  const auto scratch = Scratch<cuda::SquaresScratch>();
  for (int64_t begin = 0; begin < matrix.elements; begin += row) {
    const int64_t end = std::min(begin + row, matrix.elements);
    double sum = 0;
    for (int64_t at = begin; at < end; at += cuda::kPiece) {
      cuda::PieceSquares(HostThreads(cuda::kPieceThreads), gradient + at,
                         std::min(cuda::kPiece, end - at), *scratch);
      sum += scratch->sums[0];
    }
    *row_sums++ = sum;
  }
}

class EmulatedGpu final : public cuda::Gpu {
 public:
  explicit EmulatedGpu(EmulatedOrder order) : order_(order), host_(MakeHostDevice()) {}
  ~EmulatedGpu() override { FreeUnused(); }

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    absl::StatusOr<void*> memory = host_->Allocate(bytes);
    if (memory.ok()) std::memset(*memory, 0xFF, bytes);
    return memory;
  }
  void Free(void* memory) override {
    unused_.push_back(memory);
    if (order_ == EmulatedOrder::kAtOnce) FreeUnused();
  }
  void CopyIn(const void* host, size_t bytes, void* device) override {
    Do([=, this] { host_->CopyIn(host, bytes, device); });
  }
  void CopyOut(const void* device, size_t bytes, void* host) override {
    Do([=, this] { host_->CopyOut(device, bytes, host); });
  }
  void Fill(void* device, unsigned char byte, size_t bytes) override {
    Do([=, this] { host_->Fill(device, byte, bytes); });
  }
  absl::Status Finish() override {
    for (const auto& work : std::exchange(enqueued_, {})) work();
    FreeUnused();
    return absl::OkStatus();
  }

  void Compress(const CompressArguments& arguments) override {
    Do([=] { CompressAll(arguments); });
  }
  void Feedback(const cuda::FeedbackArguments& arguments) override {
    Do([=] {
      for (int64_t b = 0; b < arguments.blocks.count; ++b) {
        HostThreads(kThreads).Each(
            [&](int thread) { cuda::FeedbackColumn(arguments, b, thread, kHalfBasis); });
      }
    });
  }
  void Apply(const ApplyArguments& arguments) override {
    Do([=] { ApplyAll(arguments); });
  }
  void ApplyDeltas(const cuda::ApplyDeltasArguments& arguments) override {
    Do([=] { ApplyDeltasAll(arguments); });
  }
  void FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                     int64_t elements, uint32_t* not_finite) override {
    Do([=] {
      const DefaultFloatEnvironment environment;
      for (int64_t i = 0; i < elements; ++i) {
        if (!cuda::IsFinite(cuda::FormedDelta(beta, begin[i], x[i], error[i]))) *not_finite = 1;
      }
    });
  }
  void CompressDeltas(const cuda::CompressDeltasArguments& arguments) override {
    Do([=] {
      arguments.as_dct ? CompressDeltasAll<true>(arguments) : CompressDeltasAll<false>(arguments);
    });
  }
  void FeedbackDeltas(const cuda::FeedbackDeltasArguments& arguments) override {
    Do([=] { FeedbackDeltasAll(arguments); });
  }
  void Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                 int64_t elements) override {
    Do([=] {
      const DefaultFloatEnvironment environment;
      for (int64_t i = 0; i < elements; ++i) out[i] = cuda::Ahead(eta, parameters[i], momentum[i]);
    });
  }
  void StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                 uint64_t* sum) override {
    Do([=] {
      for (int64_t i = 0; i < elements; ++i) *sum += cuda::HashWord(first_index + i, parameters[i]);
    });
  }
  int64_t SquaresWorkspace(const MatrixShape&) const override { return 0; }
  void SumOfSquares(const MatrixShape& matrix, const float* gradient, double* /*workspace*/,
                    double* row_sums) override {
    Do([=] { SumRows(matrix, gradient, row_sums); });
  }

 private:
  void Do(std::function<void()> work) {
    order_ == EmulatedOrder::kAtOnce ? work() : enqueued_.push_back(std::move(work));
  }

  void FreeUnused() {
    for (void* const memory : std::exchange(unused_, {})) host_->Free(memory);
  }

  const EmulatedOrder order_;
  const std::unique_ptr<Device> host_;
  std::vector<std::function<void()>> enqueued_;
  std::vector<void*> unused_;  // what is enqueued may still use it
};

}  // namespace

std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(EmulatedOrder order) {
  return std::make_unique<EmulatedGpu>(order);
}

std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend() {
  std::unique_ptr<cuda::Gpu> gpu = MakeEmulatedGpu(EmulatedOrder::kAtOnce);
  std::unique_ptr<Backend> backend = cuda::MakeGpuBackend(gpu.get());
  return std::make_unique<WaitingBackend>(std::move(backend), std::move(gpu));
}

void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u) {
  const auto scratch = Scratch<cuda::ApplyScratch>();
  scratch->basis = kHalfBasisQ13;
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
  const auto scratch = Scratch<cuda::CompressScratch>();
  for (int row = 0; row < kBlockSide; ++row) {
    uint32_t& largest = scratch->select.row_maxima[row] = 0;
    for (int i = 0; i < kBlockSide; ++i) {
      const float value = coefficients[row * kBlockSide + i];
      scratch->tile.at[row * cuda::kTileRow + i] = value;
      largest = std::max(largest, cuda::Magnitude(value));
    }
  }
  cuda::ResetSelect(scratch->select);
  cuda::SelectLargest(HostThreads(kThreads), scratch->tile, k, scratch->select,
                      [&](int, int slot, int position) {
                        positions[slot] = static_cast<uint16_t>(position);
                        values[slot] = scratch->tile.at[cuda::IndexOf(position)];
                      });
}

}  // namespace distro::testing
