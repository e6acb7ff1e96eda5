#include "tests/kernels/emulated_cuda.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/block_site.h"
#include "kernels/cpu/block_votes.h"
#include "kernels/cpu/float_environment.h"
#include "kernels/cuda/apply_block.h"
#include "kernels/cuda/compress_block.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/half_basis.h"

namespace distro::testing {
namespace {

using cuda::ApplyArguments;
using cuda::CompressArguments;
using cuda::HalfBasis;
using cuda::kThreads;

// The last thread goes first: who relies on the order of threads within a phase is seen.
class HostThreads {
 public:
  explicit HostThreads(int count) : count_(count) {}
  template <typename F>
  void Each(const F& f) const {
    for (int thread = count_ - 1; thread >= 0; --thread) f(thread);
  }
  uint32_t Add(uint32_t* at, uint32_t value) const {
    const uint32_t before = *at;
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

template <bool kPending>
void CompressAll(const CompressArguments& arguments) {
  const auto scratch = Scratch<cuda::CompressScratch>();
  const HostThreads threads(kThreads);
  for (int64_t b = 0; b < arguments.blocks.count; ++b) {
    cuda::CompressBlock<kPending>(threads, arguments, b, kHalfBasis, *scratch);
  }
}

class EmulatedCudaBackend : public Backend {
 public:
  void Compress(const MatrixShape& matrix, BlockRange blocks, const CompressOptions& options,
                absl::Span<const float> gradient, absl::Span<float> momentum,
                absl::Span<uint16_t> positions, absl::Span<float> values) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CompressAll<false>({matrix,
                        blocks,
                        options,
                        {},
                        gradient.data(),
                        momentum.data(),
                        positions.data(),
                        values.data()});
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, int k,
                absl::Span<const uint16_t> positions, absl::Span<const float> values,
                absl::Span<float> momentum) override {
    CheckBlocks(matrix, blocks, momentum.size());
    const cuda::FeedbackArguments arguments = {
        matrix, blocks, {k, positions.data(), values.data()}, momentum.data()};
    for (int64_t b = 0; b < blocks.count; ++b) {
      HostThreads(kThreads).Each(
          [&](int thread) { cuda::FeedbackColumn(arguments, b, thread, kHalfBasis); });
    }
  }

  absl::Status Apply(const MatrixShape& matrix, BlockRange blocks, const UpdateOptions& options,
                     const VotesView& votes, absl::Span<float> parameters) override {
    CheckBlocks(matrix, blocks, parameters.size());
    CheckVotes(votes, blocks.count);
    uint32_t invalid = cuda::kAllVotesValid;
    const ApplyArguments arguments = {matrix,
                                      blocks,
                                      options,
                                      votes.offsets.data(),
                                      votes.positions.data(),
                                      votes.values.data(),
                                      parameters.data(),
                                      &invalid};
    const DefaultFloatEnvironment environment;
    const auto scratch = Scratch<cuda::ApplyScratch>();
    const HostThreads threads(kThreads);
    threads.Each([&](int thread) { CopyHalfBasis(thread, kHalfBasisQ13, scratch->basis); });
    for (int64_t b = 0; b < blocks.count; ++b) cuda::ApplyBlock(threads, arguments, b, *scratch);
    if (invalid == cuda::kAllVotesValid) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("votes of block ", invalid));
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    const DefaultFloatEnvironment environment;
    for (size_t i = 0; i < out.size(); ++i) out[i] = cuda::Ahead(eta, parameters[i], momentum[i]);
  }

  uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) override {
    uint64_t sum = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      sum += cuda::HashWord(first_index + i, parameters[i]);
    }
    return sum;
  }

  double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) override {
    const int64_t row = kBlockSide * matrix.cols;
    const auto scratch = Scratch<cuda::SquaresScratch>();
    double total = 0;
    for (int64_t begin = 0; begin < matrix.elements; begin += row) {
      const int64_t end = std::min(begin + row, matrix.elements);
      double sum = 0;
      for (int64_t at = begin; at < end; at += cuda::kPiece) {
        cuda::PieceSquares(HostThreads(cuda::kPieceThreads), gradient.data() + at,
                           std::min(cuda::kPiece, end - at), *scratch);
        sum += scratch->sums[0];
      }
      total += sum;
    }
    return total;
  }
};

}  // namespace

std::unique_ptr<Backend> MakeEmulatedCudaBackend() {
  return std::make_unique<EmulatedCudaBackend>();
}

void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u) {
  const auto scratch = Scratch<cuda::ApplyScratch>();
  scratch->basis = kHalfBasisQ13;
  scratch->total = 0;
  for (int i = 0; i < votes.count; ++i) {
    scratch->total += static_cast<uint32_t>(std::abs(int{votes.values[i]}));
    scratch->entries[i] = cuda::EntryOf(votes.positions[i], votes.values[i]);
  }
  for (int c = 0; c < kBlockSide; ++c) {
    cuda::ColumnSums sums;
    cuda::InverseColumn(*scratch, votes.count, c, sums);
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
  cuda::SelectLargest(HostThreads(kThreads), scratch->tile, k, scratch->select, positions, values);
}

void EmulatedFeedbackCompress(const MatrixShape& matrix, BlockRange blocks,
                              const CompressOptions& options, int used_k,
                              absl::Span<const uint16_t> used_positions,
                              absl::Span<const float> used_values, absl::Span<const float> gradient,
                              absl::Span<float> momentum, absl::Span<uint16_t> positions,
                              absl::Span<float> values) {
  CompressAll<true>({matrix,
                     blocks,
                     options,
                     {used_k, used_positions.data(), used_values.data()},
                     gradient.data(),
                     momentum.data(),
                     positions.data(),
                     values.data()});
}

}  // namespace distro::testing
