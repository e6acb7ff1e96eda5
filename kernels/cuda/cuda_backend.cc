#include "kernels/cuda/cuda_backend.h"

#include <vector>

namespace distro::cuda {
namespace {

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(Gpu* gpu) : gpu_(gpu) {}

  void CompressSigns(const SignCompressOptions& options,
                     absl::Span<const TensorMomentum> tensors) override {
    std::vector<CompressSignsTensor> on_device;
    for (const TensorMomentum& tensor : tensors) {
      CheckMomentum(options.k, tensor);
      on_device.push_back({.matrix = tensor.matrix,
                           .blocks = tensor.blocks,
                           .gradient = tensor.gradient.data(),
                           .momentum = tensor.momentum.data(),
                           .positions = tensor.positions.data(),
                           .values = tensor.values.data()});
    }
    gpu_->CompressSigns(options, on_device);
  }

  void FeedbackSigns(const MatrixShape& matrix, BlockRange blocks, int k,
                     absl::Span<const uint16_t> positions, absl::Span<const float> values,
                     absl::Span<float> momentum) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CheckSparse(blocks, k, positions.size(), values.size());
    gpu_->FeedbackSigns(
        {.matrix = matrix,
         .blocks = blocks,
         .pending = {.k = k, .positions = positions.data(), .values = values.data()},
         .momentum = momentum.data()});
  }

  void ApplyVotes(const MatrixShape& matrix, BlockRange blocks, const SignApplyOptions& options,
                  const VotesView& votes, absl::Span<float> parameters,
                  uint32_t* invalid) override {
    CheckBlocks(matrix, blocks, parameters.size());
    CheckShape(votes.offsets.size() == static_cast<size_t>(blocks.count) + 1,
               "vote offsets are not [count + 1]");
    gpu_->ApplyVotes({.matrix = matrix,
                      .blocks = blocks,
                      .options = options,
                      .offsets = votes.offsets.data(),
                      .positions = votes.positions.data(),
                      .values = votes.values.data(),
                      .parameters = parameters.data(),
                      .invalid = invalid});
  }

  void ApplyDeltas(const MatrixShape& matrix, BlockRange blocks, const DeltaApplyOptions& options,
                   const DeltasView& result, absl::Span<float> parameters,
                   uint32_t* invalid) override {
    CheckBlocks(matrix, blocks, parameters.size());
    CheckShape(result.offsets.size() == static_cast<size_t>(blocks.count) + 1 &&
                   result.codes.size() == static_cast<size_t>(blocks.count),
               "offsets or codes of deltas are not of the range");
    gpu_->ApplyDeltas({.matrix = matrix,
                       .blocks = blocks,
                       .options = options,
                       .offsets = result.offsets.data(),
                       .positions = result.positions.data(),
                       .signs = result.signs.data(),
                       .levels = result.levels.data(),
                       .codes = result.codes.data(),
                       .parameters = parameters.data(),
                       .invalid = invalid});
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    CheckShape(parameters.size() == out.size() && momentum.size() == out.size(),
               "lookahead arrays differ in size");
    gpu_->Lookahead(eta, parameters.data(), momentum.data(), out.data(),
                    static_cast<int64_t>(out.size()));
  }

  void StateHash(uint64_t first_index, absl::Span<const float> parameters, uint64_t* sum) override {
    gpu_->StateHash(first_index, parameters.data(), static_cast<int64_t>(parameters.size()), sum);
  }

  int64_t RowSumsWorkspace(const MatrixShape& matrix) const override {
    return cuda::SquaresWorkspace(matrix);
  }
  void RowSums(const MatrixShape& matrix, absl::Span<const float> gradient, double* workspace,
               absl::Span<double> sums) override {
    CheckBlocks(matrix, {}, gradient.size());
    CheckShape(static_cast<int64_t>(sums.size()) == matrix.BlocksDown(),
               "sums are not [BlocksDown()]");
    gpu_->SumOfSquares(matrix, gradient.data(), workspace, sums.data());
  }

 private:
  Gpu* const gpu_;
};

}  // namespace

std::unique_ptr<Backend> MakeGpuBackend(Gpu* gpu) { return std::make_unique<GpuBackend>(gpu); }

}  // namespace distro::cuda
