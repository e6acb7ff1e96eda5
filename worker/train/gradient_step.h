// The gradients of one round (docs/algorithm.md, "A worker's step"): of a slot's samples at the
// parameters, at the lookahead copy when steps overlap, or of local steps one after another on the
// copy.
//
// Not thread-safe: the training thread owns it. What it borrows outlives it.
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
  struct Parts {
    Learner* learner;
    Objective* objective;
    PhaseClock* phases;
    // An error drops the gradient that is being taken.
    std::function<absl::Status()> goes_on;
  };

  explicit GradientStep(Parts parts);

  // Over the slot's samples, at the parameters.
  absl::StatusOr<Gradient> Compute(const v1::Slot& slot);
  // The same at the lookahead copy, one step of `eta` ahead. Requires a learner with such a copy.
  absl::StatusOr<Gradient> ComputeAhead(const v1::Slot& slot, float eta);
  // The local steps of a round of deltas: on a copy of the parameters, each over an equal part of
  // the slot's samples, in order; the first, and those that are over before `window_ends` if they
  // take as long as those before them (monotonic, of the phase clock; infinite: all). One whose
  // loss or norm is not finite changes nothing. The mean loss and the last norm of those that were
  // taken; not finite when none was. Requires samples that the steps divide, and a learner with a
  // copy. Once a step was taken it is finished, whatever goes_on says, for the inner optimizer
  // cannot go back: so are the others where all are wanted, and none more within a window or by an
  // objective or a learner that was ended (Cancelled); what that one did of a step stays.
  absl::StatusOr<Gradient> TakeLocalSteps(const v1::Slot& slot, const v1::StepParameters& step,
                                          absl::Duration window_ends);

 private:
  absl::StatusOr<Gradient> GradientOf(const v1::Slot& slot, GradientAt at);

  const Parts parts_;
  bool must_go_on_ = false;
};

}  // namespace distro::worker
