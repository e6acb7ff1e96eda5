#include "kernels/cuda/cuda_backend.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::cuda {
namespace {

class GpuBackend final : public Backend {
 public:
  GpuBackend(Gpu* gpu, std::unique_ptr<Gpu> owned)
      : owned_(std::move(owned)), gpu_(gpu), answer_(gpu), squares_(gpu) {}

  void Compress(const MatrixShape& matrix, BlockRange blocks, const CompressOptions& options,
                absl::Span<const float> gradient, absl::Span<float> momentum,
                absl::Span<uint16_t> positions, absl::Span<float> values) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CheckShape(gradient.size() == momentum.size(), "gradient and momentum differ in size");
    CheckSparse(blocks, options.k, positions.size(), values.size());
    gpu_->Compress({.matrix = matrix,
                    .blocks = blocks,
                    .options = options,
                    .gradient = gradient.data(),
                    .momentum = momentum.data(),
                    .positions = positions.data(),
                    .values = values.data()});
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, int k,
                absl::Span<const uint16_t> positions, absl::Span<const float> values,
                absl::Span<float> momentum) override {
    CheckBlocks(matrix, blocks, momentum.size());
    CheckSparse(blocks, k, positions.size(), values.size());
    gpu_->Feedback({.matrix = matrix,
                    .blocks = blocks,
                    .pending = {.k = k, .positions = positions.data(), .values = values.data()},
                    .momentum = momentum.data()});
  }

  absl::Status Apply(const MatrixShape& matrix, BlockRange blocks, const UpdateOptions& options,
                     const VotesView& votes, absl::Span<float> parameters) override {
    DISTRO_RETURN_IF_ERROR(answer_.Resize(1));
    answer_.Fill(0xFF);
    EnqueueApply(matrix, blocks, options, votes, parameters,
                 reinterpret_cast<uint32_t*>(answer_.device().data()));
    DISTRO_RETURN_IF_ERROR(Answer());
    const auto block = static_cast<uint32_t>(answer_.host()[0]);
    if (block == kAllVotesValid) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("votes of block ", block,
                     " of the range: positions are not ascending below 4096, or the sum "
                     "of magnitudes exceeds ",
                     kMaxBlockVotes));
  }

  void EnqueueApply(const MatrixShape& matrix, BlockRange blocks, const UpdateOptions& options,
                    const VotesView& votes, absl::Span<float> parameters,
                    uint32_t* invalid) override {
    CheckBlocks(matrix, blocks, parameters.size());
    CheckShape(votes.offsets.size() == static_cast<size_t>(blocks.count) + 1,
               "vote offsets are not [count + 1]");
    gpu_->Apply({.matrix = matrix,
                 .blocks = blocks,
                 .options = options,
                 .offsets = votes.offsets.data(),
                 .positions = votes.positions.data(),
                 .values = votes.values.data(),
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

  uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) override {
    Must(answer_.Resize(1));
    answer_.Fill(0);
    EnqueueStateHash(first_index, parameters, answer_.device().data());
    Must(Answer());
    return answer_.host()[0];
  }

  void EnqueueStateHash(uint64_t first_index, absl::Span<const float> parameters,
                        uint64_t* sum) override {
    gpu_->StateHash(first_index, parameters.data(), static_cast<int64_t>(parameters.size()), sum);
  }

  double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) override {
    std::vector<double> sums(matrix.BlocksDown());
    RowSumsOfSquares(matrix, gradient, absl::MakeSpan(sums));
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
  }

  void RowSumsOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient,
                        absl::Span<double> sums) override {
    Must(squares_.Reserve((sums.size() + RowSumsWorkspace(matrix)) * sizeof(double)));
    auto* const row_sums = static_cast<double*>(squares_.data());
    EnqueueRowSums(matrix, gradient, row_sums + sums.size(), absl::MakeSpan(row_sums, sums.size()));
    gpu_->CopyOut(row_sums, sums.size() * sizeof(double), sums.data());
    Must(gpu_->Finish());
  }

  int64_t RowSumsWorkspace(const MatrixShape& matrix) const override {
    return gpu_->SquaresWorkspace(matrix);
  }
  void EnqueueRowSums(const MatrixShape& matrix, absl::Span<const float> gradient,
                      double* workspace, absl::Span<double> sums) override {
    CheckBlocks(matrix, {}, gradient.size());
    CheckShape(static_cast<int64_t>(sums.size()) == matrix.BlocksDown(),
               "sums are not [BlocksDown()]");
    gpu_->SumOfSquares(matrix, gradient.data(), workspace, sums.data());
  }

 private:
  absl::Status Answer() {
    answer_.CopyOut();
    return gpu_->Finish();
  }

  const std::unique_ptr<Gpu> owned_;  // nullptr: borrowed
  Gpu* const gpu_;
  TwinArray<uint64_t> answer_;  // one word, of the functions that wait
  DeviceBuffer squares_;
};

}  // namespace

std::unique_ptr<Backend> MakeGpuBackend(Gpu* gpu) {
  return std::make_unique<GpuBackend>(gpu, nullptr);
}

std::unique_ptr<Backend> MakeGpuBackend(std::unique_ptr<Gpu> gpu) {
  Gpu* const borrowed = gpu.get();
  return std::make_unique<GpuBackend>(borrowed, std::move(gpu));
}

}  // namespace distro::cuda
