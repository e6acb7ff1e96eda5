// Computes the gradients of one round (docs/algorithm.md, "A worker's step"): over a slot's samples
// at the parameters, at the lookahead copy when steps overlap, or for local steps in sequence on
// the copy.
//
// Not thread-safe: the training thread owns it. Borrowed objects outlive it.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "worker/node/learner.h"
#include "worker/train/objective.h"
#include "worker/train/phase_clock.h"

namespace distro::worker {

class GradientStep {
 public:
  struct Dependencies {
    Learner* learner;
    Objective* objective;
    PhaseClock* phases;
    // An error cancels the current gradient.
    std::function<absl::Status()> goes_on;
  };

  explicit GradientStep(Dependencies deps);

  // Over the slot's samples, at the parameters.
  absl::StatusOr<Gradient> Compute(const v1::Slot& slot);
  // The same at the lookahead copy, one step of `eta` ahead. Requires a learner with such a copy.
  absl::StatusOr<Gradient> ComputeAhead(const v1::Slot& slot, float eta);
  // Takes the local steps of a deltas round on a copy of the parameters, each over an equal part of
  // the slot's samples, in order. Always takes the first step, and further ones as long as they are
  // expected to end before `window_ends`, by the duration of earlier steps (monotonic, of the phase
  // clock; infinite: takes all). A step whose loss or norm is not finite is skipped. Returns the
  // mean loss and the last norm of the steps taken; not finite if none was. Requires samples that
  // the steps divide, and a learner with a copy.
  //
  // After the first step `goes_on` no longer cancels, because the inner optimizer cannot undo a
  // step. Without a window the remaining steps are then taken; with one, no further step. If an
  // objective that takes the steps itself ends between them, those before count.
  absl::StatusOr<Gradient> TakeLocalSteps(const v1::Slot& slot, const v1::StepParameters& step,
                                          absl::Duration window_ends);

 private:
  absl::StatusOr<Gradient> GradientOf(const v1::Slot& slot, GradientAt at);

  const Dependencies deps_;
  bool must_go_on_ = false;
};

}  // namespace distro::worker
