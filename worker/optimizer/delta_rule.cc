#include "worker/optimizer/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/update/scale.h"
#include "kernels/cpu/deltas.h"

namespace distro::worker {
namespace {

// Rounding of scales can make a part larger than its whole.
std::optional<double> Share(double part, double whole) {
  if (whole == 0) return std::nullopt;
  return std::min(part / whole, 1.0);
}

// Sums of squares over the model: of what was done, and of the buffer.
struct Squares {
  double done = 0;
  double buffer = 0;
};
Squares SquaresOf(const RunSpans& begin, const RunSpans& x, const RunSpans& error) {
  Squares sums;
  for (size_t i = 0; i < x.size(); ++i) {
    const absl::Span<const float> from = begin[i], to = x[i], e = error[i];
    for (size_t j = 0; j < e.size(); ++j) {
      const double done = from[j] - to[j], a = e[j];
      sums.done += done * done;
      sums.buffer += a * a;
    }
  }
  return sums;
}

}  // namespace

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
  ++readings_.inner_steps;
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
  Read(round, begin, x, update);
  pending_ = std::move(update);
  return absl::OkStatus();
}

int DeltaRule::CountInside(const DeltaUpdate& update, int64_t record, int tensor,
                           int64_t block) const {
  if (update.empty(record)) return 0;
  if (as_dct_[tensor]) return update.k;
  return std::min(update.k, ExtentOf(layout_->tensors()[tensor].matrix, block).Elements());
}

void DeltaRule::Read(const DeltaRound& round, const RunSpans& begin, const RunSpans& x,
                     const DeltaUpdate& update) {
  double said = 0;  // sum of squares
  int64_t records = 0, capped = 0;
  for (const BlockRun& run : layout_->Runs(0, layout_->blocks())) {
    for (int64_t record = run.offset; record < run.offset + run.blocks; ++record) {
      if (update.empty(record)) continue;
      const uint8_t code = update.codes[record];
      const double scale = std::ldexp(static_cast<double>(ScaleOf(code)), -kScaleUnitBits);
      said += CountInside(update, record, run.tensor, record - run.offset) * scale * scale;
      ++records;
      capped += code == round.caps[run.tensor] ? 1 : 0;
    }
  }
  const Squares squares = SquaresOf(begin, x, state_.error);
  readings_.delta_norm = std::sqrt(squares.done);
  readings_.energy_kept = Share(said, squares.buffer);
  readings_.capped = Share(static_cast<double>(capped), static_cast<double>(records));
}

void DeltaRule::Feedback(absl::Span<const DeltaResult* const> results) {
  int64_t positions = 0, returned = 0;
  for (uint32_t s = 0; s < layout_->segments() && pending_.has_value(); ++s) {
    if (results[s] == nullptr) continue;
    const int64_t first = layout_->SegmentFirstBlock(SegmentId(s));
    for (const BlockRun& run : layout_->SegmentRuns(SegmentId(s))) {
      const MatrixShape& matrix = layout_->tensors()[run.tensor].matrix;
      const BlockRange blocks = {.first = run.first_block, .count = run.blocks};
      const absl::Span<float> e = state_.error[run.tensor];
      const int64_t sent = first + run.offset;
      for (int64_t b = 0; b < run.blocks; ++b)
        positions += CountInside(*pending_, sent + b, run.tensor, run.first_block + b);
      returned += as_dct_[run.tensor] ? transform_.SubtractReturned(matrix, blocks, *pending_, sent,
                                                                    *results[s], run.offset, e)
                                      : SubtractReturned(matrix, blocks, *pending_, sent,
                                                         *results[s], run.offset, e);
    }
  }
  pending_.reset();
  if (positions == 0) return;
  readings_.cancelled =
      Share(static_cast<double>(positions - returned), static_cast<double>(positions));
}

}  // namespace distro::worker
