#include <algorithm>
#include <optional>

#include "kernels/block_site.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_apply.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/top_k.h"

namespace distro {
namespace {

// The order of additions within a block row is fixed, so each waits for the one before. Independent
// rows hide that latency.
constexpr int kRowsInFlight = 8;

double RowSum(const float* row, int64_t elements) {
  double sum = 0;
  for (int64_t i = 0; i < elements; ++i) sum += double{row[i]} * double{row[i]};
  return sum;
}

void SumRows(const float* rows, int64_t elements, double* sums) {
  double partial[kRowsInFlight] = {};
  for (int64_t i = 0; i < elements; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kRowsInFlight; ++r) {
      const double x = rows[r * elements + i];
      partial[r] += x * x;
    }
  }
  std::copy_n(partial, kRowsInFlight, sums);
}

void RowSumsInterleaved(const MatrixShape& matrix, absl::Span<const float> gradient,
                        absl::Span<double> sums) {
  const int64_t row = kBlockSide * matrix.cols;
  int64_t at = 0, r = 0;
  for (; at + kRowsInFlight * row <= matrix.elements;
       at += kRowsInFlight * row, r += kRowsInFlight) {
    SumRows(gradient.data() + at, row, sums.data() + r);
  }
  for (; at < matrix.elements; at += row, ++r) {
    sums[r] = RowSum(gradient.data() + at, std::min(row, matrix.elements - at));
  }
}

class VectorBackend : public Backend {
 public:
  explicit VectorBackend(const VectorKernels& kernels)
      : transform_(*kernels.transform), exact_(*kernels.exact) {}

  void CompressSigns(const SignCompressOptions& options,
                     absl::Span<const TensorMomentum> tensors) override {
    for (const TensorMomentum& t : tensors) {
      CheckMomentum(options.k, t);
      for (int64_t b = 0; b < t.blocks.count; ++b) {
        transform_.momentum(SiteOf(t.matrix, t.blocks.first + b), options, t.gradient.data(),
                            t.momentum.data(), block_);
        transform_.forward(block_, scratch_);
        TopK(transform_, block_, options.k, &top_k_, t.positions.data() + b * options.k,
             t.values.data() + b * options.k);
      }
    }
  }

  void FeedbackSigns(const MatrixShape& matrix, BlockRange blocks, int k,
                     absl::Span<const uint16_t> positions, absl::Span<const float> values,
                     absl::Span<float> momentum) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CheckSparse(blocks, k, positions.size(), values.size());
    for (int64_t b = 0; b < blocks.count; ++b) {
      transform_.subtract_inverse(SiteOf(matrix, blocks.first + b), k, positions.data() + b * k,
                                  values.data() + b * k, scratch_, block_, momentum.data());
    }
  }

  void ApplyVotes(const MatrixShape& matrix, BlockRange blocks, const SignApplyOptions& options,
                  const VotesView& votes, absl::Span<float> parameters,
                  uint32_t* invalid) override {
    CheckBlocks(matrix, blocks, parameters.size());
    CheckVotes(votes, blocks.count);
    const DefaultFloatEnvironment environment;
    for (int64_t b = 0; b < blocks.count; ++b) {
      const std::optional<BlockVotes> block_votes = VotesOfBlock(votes, b);
      if (!block_votes.has_value()) {
        *invalid = static_cast<uint32_t>(b);
        continue;
      }
      exact_.inverse_integer(*block_votes, integer_scratch_, sums_);
      exact_.update(SiteOf(matrix, blocks.first + b), options, sums_, parameters.data());
    }
  }

  void ApplyDeltas(const MatrixShape& matrix, BlockRange blocks, const DeltaApplyOptions& options,
                   const DeltasView& result, absl::Span<float> parameters,
                   uint32_t* invalid) override {
    exact::ApplyDeltas(matrix, blocks, options, result, parameters, invalid,
                       [&](const BlockSite& site, const BlockVotes& votes, float step) {
                         exact_.inverse_integer(votes, integer_scratch_, sums_);
                         exact_.subtract(site, step, sums_, parameters.data());
                       });
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    CheckShape(parameters.size() == out.size() && momentum.size() == out.size(),
               "lookahead arrays differ in size");
    const DefaultFloatEnvironment environment;
    exact_.lookahead(eta, parameters.data(), momentum.data(), out.data(),
                     static_cast<int64_t>(out.size()));
  }

  void StateHash(uint64_t first_index, absl::Span<const float> parameters, uint64_t* sum) override {
    *sum +=
        exact_.state_hash(first_index, parameters.data(), static_cast<int64_t>(parameters.size()));
  }

  void RowSums(const MatrixShape& matrix, absl::Span<const float> gradient, double* /*workspace*/,
               absl::Span<double> sums) override {
    CheckBlocks(matrix, {}, gradient.size());
    RowSumsInterleaved(matrix, gradient, sums);
  }

 private:
  const TransformKernels& transform_;
  const ExactKernels& exact_;

  // Scratch of one block.
  alignas(64) float block_[kBlockElements];
  alignas(64) float scratch_[2 * kBlockElements];
  alignas(64) int32_t sums_[kBlockElements];
  alignas(64) int32_t integer_scratch_[2 * kBlockElements];
  TopKScratch top_k_;
};

}  // namespace

std::unique_ptr<Backend> MakeVectorBackend(const VectorKernels& kernels) {
  return std::make_unique<VectorBackend>(kernels);
}

}  // namespace distro
