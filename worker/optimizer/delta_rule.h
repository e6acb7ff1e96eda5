// A worker's round under the deltas method (docs/algorithm.md, "Deltas"): inner steps on its own
// copy, what came of them in an error buffer, the largest of the buffer as an update, and what came
// back out of the buffer again. Over the runs of block rows that a rank has, on its device: the
// buffer behind kernels/delta_backend.h, the steps behind inner_backend.h and orthogonalizer.h.
//
//   copy x <- p
//   rule.Step(step, norm, gradient, x);    // H times, skipped where loss or norm is no number
//   rule.IsFinite(beta, p, x)              // at all ranks?
//   rule.Compress(round, p, x);            // yes: an update is pending
//   rule.Abandon();                        // no: nothing is
//   rule.Feedback(results);                // when its round is committed
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/layout/layout.h"
#include "common/update/delta_update.h"
#include "kernels/delta_backend.h"
#include "worker/optimizer/delta_readings.h"
#include "worker/optimizer/inner_optimizer.h"
#include "worker/optimizer/segment_parts.h"
#include "worker/optimizer/update_rule.h"

namespace distro::worker {

// One inner step.
struct InnerStep {
  float rate = 0;
  float clip_norm = 1;  // the gradient is scaled down to it
};

// By what a gradient of that norm is multiplied, so that it has `clip_norm` at most.
inline float ClipScale(double norm, float clip_norm) {
  return norm > clip_norm ? static_cast<float>(clip_norm / norm) : 1.0f;
}

// What a round says to all workers.
struct DeltaRound {
  float beta = 0;             // decay of the error buffer
  int k = 0;                  // positions of a block
  std::vector<uint8_t> caps;  // [tensors]: the largest scale code
};

// Its element arrays, of each run f32 [elements], borrowed: zeros where a worker starts.
struct DeltaState {
  RunSpans error;   // e
  RunSpans first;   // the inner optimizer's
  RunSpans second;  // the inner optimizer's
};

class DeltaRule {
 public:
  // Of the shard, the state and all that the functions below take, one span a run. `tensors`: of
  // the layout. `as_dct` [tensors]: whose blocks are sent as their DCT (MuonTensors).
  DeltaRule(RuleShard shard, const InnerSettings& settings, std::vector<InnerTensor> tensors,
            std::vector<bool> as_dct, DeltaState state);

  // Takes a gradient at `x`, of norm `norm` over the whole model, which is finite, and moves x; the
  // gradient is lost. Status: as InnerOptimizer::Step.
  absl::Status Step(const InnerStep& step, double norm, const RunSpans& gradient,
                    const RunSpans& x);

  // Whether beta * e + (begin - x) is. Where it is not at any rank, the worker abstains. A status,
  // here and below, is the device's.
  absl::StatusOr<bool> IsFinite(float beta, const RunSpans& begin, const RunSpans& x);
  // e <- beta * e + (begin - x), of which the update is pending. Requires IsFinite.
  absl::Status Compress(const DeltaRound& round, const RunSpans& begin, const RunSpans& x);
  // Instead: e is as it was, nothing is pending, and the inner optimizer begins anew.
  absl::Status Abandon();
  // As a worker starts: the same, and e is 0.
  absl::Status Forget();

  // What the last Compress made, over the blocks of the shard, run after run; nothing when there
  // was none or its feedback was taken.
  const std::optional<DeltaUpdate>& pending() const { return pending_; }

  // The round of what is pending is committed: takes out of e what came back. `results`: of each
  // segment what everybody downloads, nullptr where the worker was not included.
  absl::Status Feedback(absl::Span<const DeltaResult* const> results);
  // What is pending counts as not included.
  void ForgetPending() { pending_.reset(); }

  const RunSpans& error() const { return state_.error; }
  // Where the blocks of the shard are among the segments.
  const std::vector<SegmentPart>& parts() const { return parts_; }
  uint64_t inner_steps() const { return inner_.steps(); }
  const DeltaSums& sums() const { return sums_; }

  // What an earlier process had; the elements are those that were given.
  void RestorePending(DeltaUpdate update) { pending_ = std::move(update); }
  void RestoreInnerSteps(uint64_t steps) { inner_.RestoreSteps(steps); }

 private:
  // Positions inside the tensor that a record has, which is of this block of the run.
  int CountInside(const DeltaUpdate& update, int64_t record, size_t run, int64_t block) const;
  // Sums of an update that was made of the buffer.
  absl::StatusOr<DeltaSums::Update> SumsOf(const DeltaRound& round, const RunSpans& begin,
                                           const RunSpans& x, const DeltaUpdate& update) const;

  const RuleShard shard_;
  const std::vector<SegmentPart> parts_;
  const std::vector<bool> as_dct_;
  const DeltaState state_;
  InnerOptimizer inner_;
  std::optional<DeltaUpdate> pending_;
  DeltaSums sums_;
};

}  // namespace distro::worker
