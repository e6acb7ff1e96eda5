#include "worker/optimizer/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/update/scale.h"

namespace distro::worker {

DeltaRule::DeltaRule(RuleShard shard, const InnerSettings& settings,
                     std::vector<InnerTensor> tensors, std::vector<bool> as_dct, DeltaState state)
    : shard_(std::move(shard)),
      parts_(SegmentParts(*shard_.layout, shard_.runs)),
      as_dct_(std::move(as_dct)),
      state_(std::move(state)),
      inner_(settings, std::move(tensors), shard_, state_.first, state_.second) {}

absl::Status DeltaRule::Step(const InnerStep& step, double norm, const RunSpans& gradient,
                             const RunSpans& x) {
  ++sums_.inner_steps;
  DISTRO_RETURN_IF_ERROR(inner_.Step(step.rate, ClipScale(norm, step.clip_norm), gradient, x));
  return shard_.device->Finish();
}

absl::StatusOr<bool> DeltaRule::IsFinite(float beta, const RunSpans& begin, const RunSpans& x) {
  for (size_t i = 0; i < x.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(const bool finite,
                            shard_.deltas->IsFinite(beta, begin[i], x[i], state_.error[i]));
    if (!finite) return false;
  }
  return true;
}

absl::Status DeltaRule::Compress(const DeltaRound& round, const RunSpans& begin,
                                 const RunSpans& x) {
  DeltaUpdate update{.k = round.k, .positions = {}, .signs = {}, .codes = {}};
  for (size_t i = 0; i < x.size(); ++i) {
    const ShardRun& run = shard_.runs[i];
    DISTRO_RETURN_IF_ERROR(shard_.deltas->Compress(
        run.matrix, as_dct_[run.tensor], {.beta = round.beta, .cap = round.caps[run.tensor]},
        begin[i], x[i], state_.error[i], &update));
  }
  DISTRO_ASSIGN_OR_RETURN(sums_.update, SumsOf(round, begin, x, update));
  pending_ = std::move(update);
  return absl::OkStatus();
}

absl::Status DeltaRule::Abandon() {
  pending_.reset();
  inner_.Reset();
  return shard_.device->Finish();
}

absl::Status DeltaRule::Forget() {
  for (const absl::Span<float> e : state_.error)
    shard_.device->Fill(e.data(), 0, e.size() * sizeof(float));
  return Abandon();
}

int DeltaRule::CountInside(const DeltaUpdate& update, int64_t record, size_t run,
                           int64_t block) const {
  if (update.empty(record)) return 0;
  if (as_dct_[shard_.runs[run].tensor]) return update.k;
  return std::min(update.k, ExtentOf(shard_.runs[run].matrix, block).Elements());
}

absl::StatusOr<DeltaSums::Update> DeltaRule::SumsOf(const DeltaRound& round, const RunSpans& begin,
                                                    const RunSpans& x,
                                                    const DeltaUpdate& update) const {
  DeltaSums::Update sums;
  int64_t record = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(const double done, shard_.inner->SquaredDistance(begin[i], x[i]));
    DISTRO_ASSIGN_OR_RETURN(const double buffer, shard_.inner->SquaredNorm(state_.error[i]));
    sums.done += done;
    sums.buffer += buffer;
    for (int64_t b = 0; b < shard_.runs[i].matrix.Blocks(); ++b, ++record) {
      if (update.empty(record)) continue;
      const uint8_t code = update.codes[record];
      const double scale = std::ldexp(static_cast<double>(ScaleOf(code)), -kScaleUnitBits);
      sums.said += CountInside(update, record, i, b) * scale * scale;
      ++sums.records;
      sums.capped += code == round.caps[shard_.runs[i].tensor] ? 1 : 0;
    }
  }
  return sums;
}

absl::Status DeltaRule::Feedback(absl::Span<const DeltaResult* const> results) {
  const std::optional<DeltaUpdate> update = std::exchange(pending_, std::nullopt);
  const auto included = [](const DeltaResult* result) { return result != nullptr; };
  if (!update.has_value() || std::ranges::none_of(results, included)) return absl::OkStatus();
  sums_.sent = sums_.returned = 0;
  for (const SegmentPart& part : parts_) {
    const DeltaResult* const result = results[part.segment.value()];
    if (result == nullptr) continue;
    const MatrixShape& matrix = shard_.runs[part.run].matrix;
    const absl::Span<float> e = state_.error[part.run];
    const int64_t sent = part.first_pending, returned = part.first_in_segment;
    for (int64_t b = 0; b < part.blocks.count; ++b)
      sums_.sent += CountInside(*update, sent + b, part.run, part.blocks.first + b);
    DISTRO_ASSIGN_OR_RETURN(
        const int64_t count,
        shard_.deltas->Feedback(matrix, as_dct_[shard_.runs[part.run].tensor], part.blocks, *update,
                                sent, *result, returned, e));
    sums_.returned += count;
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
