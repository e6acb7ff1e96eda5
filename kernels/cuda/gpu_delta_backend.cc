#include "kernels/cuda/gpu_delta_backend.h"

#include "common/base/status_macros.h"

namespace distro::cuda {
namespace {

template <typename T>
void Append(absl::Span<const T> numbers, std::vector<T>* all) {
  all->insert(all->end(), numbers.begin(), numbers.end());
}

class GpuDeltaBackend final : public DeltaBackend {
 public:
  explicit GpuDeltaBackend(Gpu* gpu)
      : gpu_(gpu),
        positions_(gpu),
        signs_(gpu),
        codes_(gpu),
        offsets_(gpu),
        returned_positions_(gpu),
        not_finite_(gpu),
        returned_(gpu) {}

  absl::StatusOr<bool> IsFinite(float beta, absl::Span<const float> begin,
                                absl::Span<const float> x, absl::Span<const float> error) override {
    CheckSizes(begin, x, error);
    DISTRO_RETURN_IF_ERROR(not_finite_.Resize(1));
    not_finite_.Fill(0);
    gpu_->FindNotFinite(beta, begin.data(), x.data(), error.data(),
                        static_cast<int64_t>(error.size()), not_finite_.device().data());
    not_finite_.CopyOut();
    DISTRO_RETURN_IF_ERROR(gpu_->Finish());
    return not_finite_.host()[0] == 0;
  }

  absl::Status Compress(const MatrixShape& matrix, bool as_dct, const DeltaCompressOptions& options,
                        absl::Span<const float> begin, absl::Span<const float> x,
                        absl::Span<float> error, DeltaUpdate* update) override {
    CheckSizes(begin, x, error);
    CheckBlocks(matrix, {}, error.size());
    CheckShape(update->k >= 1 && update->k <= kBlockElements, "k is outside 1..4096");
    const int64_t blocks = matrix.Blocks();
    DISTRO_RETURN_IF_ERROR(ResizeRecords(blocks, update->k));
    gpu_->CompressDeltas({.matrix = matrix,
                          .blocks = {.first = 0, .count = blocks},
                          .beta = options.beta,
                          .k = update->k,
                          .cap = options.cap,
                          .as_dct = as_dct,
                          .begin = begin.data(),
                          .x = x.data(),
                          .error = error.data(),
                          .positions = positions_.device().data(),
                          .signs = signs_.device().data(),
                          .codes = codes_.device().data()});
    positions_.CopyOut();
    signs_.CopyOut();
    codes_.CopyOut();
    DISTRO_RETURN_IF_ERROR(gpu_->Finish());
    Append<uint16_t>(positions_.host(), &update->positions);
    Append<int8_t>(signs_.host(), &update->signs);
    Append<uint8_t>(codes_.host(), &update->codes);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Feedback(const MatrixShape& matrix, bool as_dct, BlockRange blocks,
                                   const DeltaUpdate& update, int64_t update_first,
                                   const DeltaResult& result, int64_t result_first,
                                   absl::Span<float> error) override {
    CheckBlocks(matrix, blocks, error.size());
    const auto record = [&](const auto& all, int64_t entries) {
      return absl::MakeSpan(all).subspan(update_first * entries, blocks.count * entries);
    };
    const auto offsets = absl::MakeSpan(result.offsets).subspan(result_first, blocks.count + 1);
    const uint32_t begin = offsets.front(), entries = offsets.back() - begin;
    const auto returned = absl::MakeSpan(result.positions).subspan(begin, entries);
    DISTRO_RETURN_IF_ERROR(CopyIn(record(update.positions, update.k), &positions_));
    DISTRO_RETURN_IF_ERROR(CopyIn(record(update.signs, update.k), &signs_));
    DISTRO_RETURN_IF_ERROR(CopyIn(record(update.codes, 1), &codes_));
    DISTRO_RETURN_IF_ERROR(CopyIn(offsets, &offsets_));
    DISTRO_RETURN_IF_ERROR(CopyIn(returned, &returned_positions_));
    DISTRO_RETURN_IF_ERROR(returned_.Resize(1));
    returned_.Fill(0);
    gpu_->FeedbackDeltas({.matrix = matrix,
                          .blocks = blocks,
                          .as_dct = as_dct,
                          .sent = {.k = update.k,
                                   .positions = positions_.device().data(),
                                   .signs = signs_.device().data(),
                                   .codes = codes_.device().data()},
                          .offsets = offsets_.device().data(),
                          .positions = returned_positions_.device().data(),
                          .error = error.data(),
                          .returned = returned_.device().data()});
    returned_.CopyOut();
    DISTRO_RETURN_IF_ERROR(gpu_->Finish());
    return static_cast<int64_t>(returned_.host()[0]);
  }

 private:
  static void CheckSizes(absl::Span<const float> begin, absl::Span<const float> x,
                         absl::Span<const float> error) {
    CheckShape(begin.size() == error.size() && x.size() == error.size(),
               "arrays of one tensor differ");
  }
  absl::Status ResizeRecords(int64_t blocks, int k) {
    DISTRO_RETURN_IF_ERROR(positions_.Resize(blocks * k));
    DISTRO_RETURN_IF_ERROR(signs_.Resize(blocks * k));
    return codes_.Resize(blocks);
  }
  template <typename T>
  static absl::Status CopyIn(absl::Span<const T> numbers, TwinArray<T>* twin) {
    DISTRO_RETURN_IF_ERROR(twin->Resize(numbers.size()));
    std::copy(numbers.begin(), numbers.end(), twin->host().begin());
    twin->CopyIn();
    return absl::OkStatus();
  }

  Gpu* const gpu_;
  TwinArray<uint16_t> positions_;
  TwinArray<int8_t> signs_;
  TwinArray<uint8_t> codes_;
  TwinArray<uint32_t> offsets_;
  TwinArray<uint16_t> returned_positions_;
  TwinArray<uint32_t> not_finite_;
  TwinArray<uint64_t> returned_;
};

}  // namespace

std::unique_ptr<DeltaBackend> MakeGpuDeltaBackend(Gpu* gpu) {
  return std::make_unique<GpuDeltaBackend>(gpu);
}

}  // namespace distro::cuda
