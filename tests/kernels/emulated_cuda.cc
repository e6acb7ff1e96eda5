#include "tests/kernels/emulated_cuda.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <thread>
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
using cuda::HalfBasis;
using cuda::kThreads;

// Runs the last thread first, so that code which relies on the order of threads fails.
class ThreadsInTurn {
 public:
  explicit ThreadsInTurn(int count) : count_(count) {}
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

class RealThread {
 public:
  RealThread(int number, std::barrier<>* barrier) : number_(number), barrier_(barrier) {}
  template <typename F>
  void Each(const F& f) const {
    f(number_);
    barrier_->arrive_and_wait();
  }
  template <typename T>
  T Add(T* at, std::type_identity_t<T> value) const {
    return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
  }

 private:
  const int number_;
  std::barrier<>* const barrier_;
};

// Runs kernel(threads) with a group of threads.
template <typename Kernel>
void RunGroup(EmulatedThreads how, int count, const Kernel& kernel) {
  if (how == EmulatedThreads::kInTurn) {
    kernel(ThreadsInTurn(count));
    return;
  }
  std::barrier<> barrier(count);
  std::vector<std::thread> group;
  for (int number = 0; number < count; ++number)
    group.emplace_back([&, number] { kernel(RealThread(number, &barrier)); });
  for (std::thread& thread : group) thread.join();
}

constexpr HalfBasis<float> kHalfBasis = cuda::MakeHalfBasisF32();
constexpr HalfBasis<int32_t> kHalfBasisQ13 = cuda::MakeHalfBasisQ13();

// As a kernel finds shared memory: any bits.
template <typename T>
std::unique_ptr<T> Scratch() {
  auto scratch = std::make_unique<T>();
  std::memset(static_cast<void*>(scratch.get()), 0xFF, sizeof(T));
  return scratch;
}

void CompressAll(EmulatedThreads how, const CompressOptions& options,
                 const cuda::CompressTensor& tensor) {
  const auto scratch = Scratch<cuda::CompressScratch>();
  RunGroup(how, kThreads, [&](const auto& threads) {
    for (int64_t b = 0; b < tensor.blocks.count; ++b) {
      cuda::CompressBlock<true>(threads, options, tensor, b, *scratch);
      cuda::CompressBlock<false>(threads, options, tensor, b, *scratch);
    }
  });
}

void FeedbackAll(EmulatedThreads how, const cuda::FeedbackArguments& arguments) {
  RunGroup(how, kThreads, [&](const auto& threads) {
    for (int64_t b = 0; b < arguments.blocks.count; ++b)
      threads.Each([&](int thread) { cuda::FeedbackColumn(arguments, b, thread, kHalfBasis); });
  });
}

void ApplyAll(EmulatedThreads how, const ApplyArguments& arguments) {
  const auto scratch = Scratch<cuda::ApplyScratch>();
  RunGroup(how, kThreads, [&](const auto& threads) {
    const DefaultFloatEnvironment environment;
    threads.Each([&](int thread) { CopyHalfBasis(thread, kHalfBasisQ13, scratch->basis); });
    for (int64_t b = 0; b < arguments.blocks.count; ++b)
      cuda::ApplyBlock(threads, arguments, b, *scratch);
  });
}

void ApplyDeltasAll(EmulatedThreads how, const cuda::ApplyDeltasArguments& arguments) {
  const auto scratch = Scratch<cuda::ApplyDeltasScratch>();
  RunGroup(how, kThreads, [&](const auto& threads) {
    const DefaultFloatEnvironment environment;
    threads.Each([&](int thread) { CopyHalfBasis(thread, kHalfBasisQ13, scratch->apply.basis); });
    for (int64_t b = 0; b < arguments.blocks.count; ++b)
      cuda::ApplyDeltasBlock(threads, arguments, b, *scratch);
  });
}

template <bool kAsDct>
void CompressDeltasAll(EmulatedThreads how, const cuda::CompressDeltasArguments& arguments) {
  const auto scratch = Scratch<cuda::CompressDeltasScratch>();
  RunGroup(how, kThreads, [&](const auto& threads) {
    const DefaultFloatEnvironment environment;
    for (int64_t b = 0; b < arguments.blocks.count; ++b) {
      cuda::CompressDeltasBlock<kAsDct, true>(threads, arguments, b, *scratch);
      cuda::CompressDeltasBlock<kAsDct, false>(threads, arguments, b, *scratch);
    }
  });
}

void FeedbackDeltasAll(EmulatedThreads how, const cuda::FeedbackDeltasArguments& arguments) {
  const auto scratch = Scratch<cuda::FeedbackFrequenciesScratch>();
  scratch->basis = kHalfBasis;
  scratch->common.all_returned = 0;
  RunGroup(how, kThreads, [&](const auto& threads) {
    const DefaultFloatEnvironment environment;
    for (int64_t b = 0; b < arguments.blocks.count; ++b) {
      if (arguments.as_dct)
        cuda::FeedbackFrequencies(threads, arguments, b, *scratch);
      else
        cuda::FeedbackElements(threads, arguments, b, scratch->common);
    }
  });
  *arguments.returned += scratch->common.all_returned;
}

// As RowsKernel and PiecesKernel of sum_of_squares.cu.
void SumRows(EmulatedThreads how, const MatrixShape& matrix, const float* gradient,
             double* row_sums) {
  const int64_t row = kBlockSide * matrix.cols;
  const auto scratch = Scratch<cuda::SquaresScratch>();
  std::fill_n(row_sums, matrix.BlocksDown(), 0.0);
  RunGroup(how, cuda::kPieceThreads, [&](const auto& threads) {
    for (int64_t at = 0; at < matrix.elements;) {
      const int64_t down = at / row;
      const int64_t end = std::min((down + 1) * row, matrix.elements);
      const int64_t count = std::min(cuda::kPiece, end - at);
      cuda::PieceSquares(threads, gradient + at, count, *scratch);
      threads.Each([&](int thread) {
        if (thread == 0) row_sums[down] += scratch->sums[0];
      });
      at += count;
    }
  });
}

class EmulatedGpu final : public cuda::Gpu {
 public:
  EmulatedGpu(EmulatedOrder order, EmulatedThreads threads)
      : order_(order), threads_(threads), host_(MakeHostDevice()) {}
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

  void Compress(const CompressOptions& options,
                absl::Span<const cuda::CompressTensor> tensors) override {
    Do([this, options, all = std::vector(tensors.begin(), tensors.end())] {
      for (const cuda::CompressTensor& tensor : all) CompressAll(threads_, options, tensor);
    });
  }
  void Feedback(const cuda::FeedbackArguments& arguments) override {
    Do([=, this] { FeedbackAll(threads_, arguments); });
  }
  void Apply(const ApplyArguments& arguments) override {
    Do([=, this] { ApplyAll(threads_, arguments); });
  }
  void ApplyDeltas(const cuda::ApplyDeltasArguments& arguments) override {
    Do([=, this] { ApplyDeltasAll(threads_, arguments); });
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
    Do([=, this] {
      arguments.as_dct ? CompressDeltasAll<true>(threads_, arguments)
                       : CompressDeltasAll<false>(threads_, arguments);
    });
  }
  void FeedbackDeltas(const cuda::FeedbackDeltasArguments& arguments) override {
    Do([=, this] { FeedbackDeltasAll(threads_, arguments); });
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
    Do([=, this] { SumRows(threads_, matrix, gradient, row_sums); });
  }

 private:
  void Do(std::function<void()> work) {
    order_ == EmulatedOrder::kAtOnce ? work() : enqueued_.push_back(std::move(work));
  }

  void FreeUnused() {
    for (void* const memory : std::exchange(unused_, {})) host_->Free(memory);
  }

  const EmulatedOrder order_;
  const EmulatedThreads threads_;
  const std::unique_ptr<Device> host_;
  std::vector<std::function<void()>> enqueued_;
  std::vector<void*> unused_;  // what is enqueued may still use it
};

}  // namespace

std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(EmulatedOrder order, EmulatedThreads threads) {
  return std::make_unique<EmulatedGpu>(order, threads);
}

std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend(EmulatedThreads threads) {
  std::unique_ptr<cuda::Gpu> gpu = MakeEmulatedGpu(EmulatedOrder::kAtOnce, threads);
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
  cuda::SelectLargest(ThreadsInTurn(kThreads), scratch->tile, k, scratch->select,
                      [&](int, int slot, int position) {
                        positions[slot] = static_cast<uint16_t>(position);
                        values[slot] = scratch->tile.at[cuda::IndexOf(position)];
                      });
}

void EmulatedForwardTransform(const float* x, float* c) {
  float samples[kBlockSide];
  std::copy_n(x, kBlockSide, samples);
  cuda::ForwardTransform(samples, [c](int f, float value) { c[f] = value; });
}

}  // namespace distro::testing
