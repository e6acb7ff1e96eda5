#include "kernels/cpu/cpu_delta_backend.h"

#include "kernels/cpu/delta_transform.h"
#include "kernels/cpu/deltas.h"

namespace distro {
namespace {

class CpuDeltaBackend final : public DeltaBackend {
 public:
  absl::StatusOr<bool> IsFinite(float beta, absl::Span<const float> begin,
                                absl::Span<const float> x, absl::Span<const float> error) override {
    return DeltaIsFinite(beta, begin, x, error);
  }

  absl::Status Compress(const MatrixShape& matrix, bool as_dct, const DeltaCompressOptions& options,
                        absl::Span<const float> begin, absl::Span<const float> x,
                        absl::Span<float> error, DeltaUpdate* update) override {
    FormDelta(options.beta, begin, x, error);
    if (as_dct)
      transform_.AppendLargest(matrix, error, options.cap, update);
    else
      AppendLargest(matrix, error, options.cap, update);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Feedback(const MatrixShape& matrix, bool as_dct, BlockRange blocks,
                                   const DeltaUpdate& update, int64_t update_first,
                                   const DeltaResult& result, int64_t result_first,
                                   absl::Span<float> error) override {
    return as_dct ? transform_.SubtractReturned(matrix, blocks, update, update_first, result,
                                                result_first, error)
                  : SubtractReturned(matrix, blocks, update, update_first, result, result_first,
                                     error);
  }

 private:
  DeltaTransform transform_;
};

}  // namespace

std::unique_ptr<DeltaBackend> MakeCpuDeltaBackend() { return std::make_unique<CpuDeltaBackend>(); }

}  // namespace distro
