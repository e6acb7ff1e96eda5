#include <optional>

#include "kernels/block_site.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_apply.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/reference.h"

namespace distro {
namespace {

class ReferenceBackend : public Backend {
 public:
  void CompressSigns(const SignCompressOptions& options,
                     absl::Span<const TensorMomentum> tensors) override {
    for (const TensorMomentum& t : tensors) {
      CheckMomentum(options.k, t);
      for (int64_t b = 0; b < t.blocks.count; ++b) {
        reference::Momentum(SiteOf(t.matrix, t.blocks.first + b), options, t.gradient, t.momentum,
                            block_);
        reference::ForwardTransform(block_, coefficients_);
        reference::TopK(coefficients_, options.k, t.positions.data() + b * options.k,
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
      reference::InverseTransform(k, positions.data() + b * k, values.data() + b * k, block_);
      Subtract(SiteOf(matrix, blocks.first + b), momentum);
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
      reference::InverseInteger(*block_votes, sums_);
      reference::Update(SiteOf(matrix, blocks.first + b), options, sums_, parameters);
    }
  }

  void ApplyDeltas(const MatrixShape& matrix, BlockRange blocks, const DeltaApplyOptions& options,
                   const DeltasView& result, absl::Span<float> parameters,
                   uint32_t* invalid) override {
    exact::ApplyDeltas(matrix, blocks, options, result, parameters, invalid,
                       [&](const BlockSite& site, const BlockVotes& votes, float step) {
                         reference::InverseInteger(votes, sums_);
                         reference::Subtract(site, step, sums_, parameters);
                       });
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    CheckShape(parameters.size() == out.size() && momentum.size() == out.size(),
               "lookahead arrays differ in size");
    const DefaultFloatEnvironment environment;
    reference::Lookahead(eta, parameters, momentum, out);
  }

  void StateHash(uint64_t first_index, absl::Span<const float> parameters, uint64_t* sum) override {
    *sum += reference::StateHash(first_index, parameters);
  }

  void RowSums(const MatrixShape& matrix, absl::Span<const float> gradient, double* /*workspace*/,
               absl::Span<double> sums) override {
    CheckBlocks(matrix, {}, gradient.size());
    reference::RowSums(matrix, gradient, sums);
  }

 private:
  void Subtract(const BlockSite& site, absl::Span<float> momentum) const {
    for (int r = 0; r < site.rows; ++r) {
      const int cols = site.ColsOfRow(r);
      for (int c = 0; c < cols; ++c)
        momentum[site.offset + r * site.stride + c] -= block_[r * kBlockSide + c];
    }
  }

  // Scratch of one block.
  float block_[kBlockElements];
  float coefficients_[kBlockElements];
  int32_t sums_[kBlockElements];
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace distro
