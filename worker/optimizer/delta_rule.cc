#include "worker/optimizer/delta_rule.h"

#include <utility>

#include "kernels/cpu/deltas.h"

namespace distro::worker {

DeltaRule::DeltaRule(const Layout* layout, const InnerSettings& settings,
                     std::vector<InnerTensor> tensors, std::vector<bool> as_dct, DeltaState state)
    : layout_(layout),
      as_dct_(std::move(as_dct)),
      state_(std::move(state)),
      inner_(settings, std::move(tensors), state_.first, state_.second) {}

void DeltaRule::Step(const InnerStep& step, double norm, const RunSpans& gradient,
                     const RunSpans& x) {
  const float scale = norm > step.clip_norm ? static_cast<float>(step.clip_norm / norm) : 1.0f;
  inner_.BeginStep();
  for (size_t i = 0; i < x.size(); ++i) inner_.Step(i, step.rate, scale, gradient[i], x[i]);
}

absl::Status DeltaRule::Compress(const DeltaRound& round, const RunSpans& begin,
                                 const RunSpans& x) {
  pending_.reset();
  for (size_t i = 0; i < x.size(); ++i) {
    if (DeltaIsFinite(round.beta, begin[i], x[i], state_.error[i])) continue;
    inner_.Reset();
    return absl::FailedPreconditionError("the worker's copy is not finite after its inner steps");
  }
  DeltaUpdate update{.k = round.k, .positions = {}, .signs = {}, .codes = {}};
  for (size_t i = 0; i < x.size(); ++i) {
    FormDelta(round.beta, begin[i], x[i], state_.error[i]);
    const MatrixShape& matrix = layout_->tensors()[i].matrix;
    if (as_dct_[i])
      transform_.AppendLargest(matrix, state_.error[i], round.caps[i], &update);
    else
      AppendLargest(matrix, state_.error[i], round.caps[i], &update);
  }
  pending_ = std::move(update);
  return absl::OkStatus();
}

void DeltaRule::Feedback(absl::Span<const DeltaResult* const> results) {
  for (uint32_t s = 0; s < layout_->segments() && pending_.has_value(); ++s) {
    if (results[s] == nullptr) continue;
    const int64_t first = layout_->SegmentFirstBlock(SegmentId(s));
    for (const BlockRun& run : layout_->SegmentRuns(SegmentId(s))) {
      const MatrixShape& matrix = layout_->tensors()[run.tensor].matrix;
      const BlockRange blocks = {.first = run.first_block, .count = run.blocks};
      const absl::Span<float> e = state_.error[run.tensor];
      const int64_t sent = first + run.offset;
      if (as_dct_[run.tensor])
        transform_.SubtractReturned(matrix, blocks, *pending_, sent, *results[s], run.offset, e);
      else
        SubtractReturned(matrix, blocks, *pending_, sent, *results[s], run.offset, e);
    }
  }
  pending_.reset();
}

}  // namespace distro::worker
