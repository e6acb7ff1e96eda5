#include "kernels/cpu/deltas_backend.h"

#include <algorithm>

#include "kernels/cpu/deltas_compress.h"
#include "kernels/cpu/deltas_transform.h"

namespace distro {
namespace {

class CpuDeltaBackend final : public DeltaBackend {
 public:
  void FindNotFinite(float beta, absl::Span<const float> begin, absl::Span<const float> x,
                     absl::Span<const float> error, uint32_t* not_finite) override {
    if (!DeltaIsFinite(beta, begin, x, error)) *not_finite = 1;
  }

  void Compress(const MatrixShape& matrix, const DeltaCompressOptions& options,
                absl::Span<const float> begin, absl::Span<const float> x, absl::Span<float> error,
                const DeltaRecords& records) override {
    CheckRecords(records, matrix.Blocks());
    FormDelta(options.beta, begin, x, error);
    DeltaUpdate update{.k = records.k, .positions = {}, .signs = {}, .codes = {}};
    if (options.as_dct)
      transform_.AppendLargest(matrix, error, options.cap, &update);
    else
      AppendLargest(matrix, error, options.cap, &update);
    std::ranges::copy(update.positions, records.positions.begin());
    std::ranges::copy(update.signs, records.signs.begin());
    std::ranges::copy(update.codes, records.codes.begin());
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, bool as_dct,
                const DeltaRecordsView& sent, const DeltasView& result, absl::Span<float> error,
                uint64_t* returned) override {
    *returned += as_dct ? transform_.SubtractReturned(matrix, blocks, sent, result, error)
                        : SubtractReturned(matrix, blocks, sent, result, error);
  }

  void SumSquares(absl::Span<const float> begin, absl::Span<const float> x,
                  absl::Span<const float> error, const SquaresOfPieces& sums) override {
    CheckPieces(sums, error.size());
    SquaresOfDifference(begin, x, sums.moved);
    Squares(error, sums.buffer);
  }

 private:
  DeltaTransform transform_;
};

}  // namespace

std::unique_ptr<DeltaBackend> MakeCpuDeltaBackend() { return std::make_unique<CpuDeltaBackend>(); }

}  // namespace distro
