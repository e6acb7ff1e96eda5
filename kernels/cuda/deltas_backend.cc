#include "kernels/cuda/deltas_backend.h"

namespace distro::cuda {
namespace {

void CheckSizes(absl::Span<const float> begin, absl::Span<const float> x,
                absl::Span<const float> error) {
  CheckShape(begin.size() == error.size() && x.size() == error.size(),
             "arrays of one tensor differ");
}

class GpuDeltaBackend final : public DeltaBackend {
 public:
  explicit GpuDeltaBackend(Gpu* gpu) : gpu_(gpu) {}

  void FindNotFinite(float beta, absl::Span<const float> begin, absl::Span<const float> x,
                     absl::Span<const float> error, uint32_t* not_finite) override {
    CheckSizes(begin, x, error);
    gpu_->FindNotFinite(beta, begin.data(), x.data(), error.data(),
                        static_cast<int64_t>(error.size()), not_finite);
  }

  void Compress(const MatrixShape& matrix, const DeltaCompressOptions& options,
                absl::Span<const float> begin, absl::Span<const float> x, absl::Span<float> error,
                const DeltaRecords& records) override {
    CheckSizes(begin, x, error);
    CheckBlocks(matrix, {}, error.size());
    CheckRecords(records, matrix.Blocks());
    gpu_->CompressDeltas({.matrix = matrix,
                          .blocks = {.first = 0, .count = matrix.Blocks()},
                          .beta = options.beta,
                          .k = records.k,
                          .cap = options.cap,
                          .as_dct = options.as_dct,
                          .begin = begin.data(),
                          .x = x.data(),
                          .error = error.data(),
                          .positions = records.positions.data(),
                          .signs = records.signs.data(),
                          .codes = records.codes.data()});
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, bool as_dct,
                const DeltaRecordsView& sent, const DeltasView& result, absl::Span<float> error,
                uint64_t* returned) override {
    CheckBlocks(matrix, blocks, error.size());
    CheckRecords(sent, blocks.count);
    CheckShape(result.offsets.size() == static_cast<size_t>(blocks.count) + 1,
               "offsets of deltas are not of the range");
    gpu_->FeedbackDeltas({.matrix = matrix,
                          .blocks = blocks,
                          .as_dct = as_dct,
                          .sent = {.k = sent.k,
                                   .positions = sent.positions.data(),
                                   .signs = sent.signs.data(),
                                   .codes = sent.codes.data()},
                          .offsets = result.offsets.data(),
                          .positions = result.positions.data(),
                          .error = error.data(),
                          .returned = returned});
  }

  void SumSquares(absl::Span<const float> begin, absl::Span<const float> x,
                  absl::Span<const float> error, const SquaresOfPieces& sums) override {
    CheckSizes(begin, x, error);
    CheckPieces(sums, error.size());
    gpu_->DeltaSquares(begin.data(), x.data(), error.data(), static_cast<int64_t>(error.size()),
                       sums.moved.data(), sums.buffer.data());
  }

 private:
  Gpu* const gpu_;
};

}  // namespace

std::unique_ptr<DeltaBackend> MakeGpuDeltaBackend(Gpu* gpu) {
  return std::make_unique<GpuDeltaBackend>(gpu);
}

}  // namespace distro::cuda
