// A worker's round under the deltas method (docs/algorithm.md, "Deltas"): inner steps on its own
// copy, what came of them in an error buffer, the largest of the buffer as an update, and what came
// back out of the buffer again. On the CPU, over whole tensors.
//
//   copy x <- p
//   rule.Step(step, norm, gradient, x);    // H times, skipped where loss or norm is no number
//   rule.Compress(round, p, x);            // an update is pending
//   rule.Feedback(results);                // when its round is committed
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/layout/layout.h"
#include "common/update/delta_update.h"
#include "kernels/cpu/delta_transform.h"
#include "worker/optimizer/delta_readings.h"
#include "worker/optimizer/inner_optimizer.h"
#include "worker/optimizer/update_rule.h"

namespace distro::worker {

// One inner step.
struct InnerStep {
  float rate = 0;
  float clip_norm = 1;  // the gradient is scaled down to it
};

// What a round says to all workers.
struct DeltaRound {
  float beta = 0;             // decay of the error buffer
  int k = 0;                  // positions of a block
  std::vector<uint8_t> caps;  // [tensors]: the largest scale code
};

// Its element arrays, f32 [elements of the model] each, borrowed: zeros where a worker starts.
struct DeltaState {
  RunSpans error;   // e
  RunSpans first;   // the inner optimizer's
  RunSpans second;  // the inner optimizer's
};

class DeltaRule {
 public:
  // `layout` is borrowed; `tensors` and the state are in its order. `as_dct` [tensors]: whose
  // blocks are sent as their DCT (MuonTensors).
  DeltaRule(const Layout* layout, const InnerSettings& settings, std::vector<InnerTensor> tensors,
            std::vector<bool> as_dct, DeltaState state);

  // Takes a gradient at `x`, of norm `norm` over the whole model, which is finite, and moves x.
  void Step(const InnerStep& step, double norm, const RunSpans& gradient, const RunSpans& x);

  // e <- beta * e + (begin - x), of which the update is pending. FailedPrecondition: that is not
  // finite; then e is as it was, the inner optimizer begins anew, and the worker abstains.
  absl::Status Compress(const DeltaRound& round, const RunSpans& begin, const RunSpans& x);

  // What the last Compress made, over all blocks of the model; nothing when there was none or its
  // feedback was taken.
  const std::optional<DeltaUpdate>& pending() const { return pending_; }

  // The round of what is pending is committed: takes out of e what came back. `results`: of each
  // segment what everybody downloads, nullptr where the worker was not included.
  void Feedback(absl::Span<const DeltaResult* const> results);
  // What is pending counts as not included.
  void ForgetPending() { pending_.reset(); }

  const RunSpans& error() const { return state_.error; }
  uint64_t inner_steps() const { return inner_.steps(); }
  const DeltaReadings& readings() const { return readings_; }

  // What an earlier process had; the elements are those that were given.
  void RestorePending(DeltaUpdate update) { pending_ = std::move(update); }
  void RestoreInnerSteps(uint64_t steps) { inner_.RestoreSteps(steps); }

 private:
  // Positions inside the tensor that a record has, which is of this block of the tensor.
  int CountInside(const DeltaUpdate& update, int64_t record, int tensor, int64_t block) const;
  // Readings of an update that was made of the buffer.
  void Read(const DeltaRound& round, const RunSpans& begin, const RunSpans& x,
            const DeltaUpdate& update);

  const Layout* const layout_;
  const std::vector<bool> as_dct_;
  const DeltaState state_;
  InnerOptimizer inner_;
  DeltaTransform transform_;
  std::optional<DeltaUpdate> pending_;
  DeltaReadings readings_;
};

}  // namespace distro::worker
