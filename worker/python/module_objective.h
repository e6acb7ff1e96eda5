// The objective of a Python program: requests gradients and local steps from the program
// (hand_over.h).
//
// Not thread-safe: the training thread owns it. Borrowed objects outlive it.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"
#include "worker/python/hand_over.h"
#include "worker/python/module_learner.h"
#include "worker/train/objective.h"
#include "worker/train/phase_clock.h"

namespace distro::worker {

class ModuleObjective final : public Objective {
 public:
  ModuleObjective(ModuleLearner* learner, HandOver* program, PhaseClock* phases)
      : learner_(learner), program_(program), phases_(phases) {}

  void Expect(v1::Slot samples) override { expected_ = std::move(samples); }
  // With signs. Cancelled also: the program has closed the session.
  absl::StatusOr<Gradient> GradientOf(const v1::Slot& samples, GradientAt at,
                                      GoesOn goes_on) override;
  bool takes_local_steps() const override { return true; }
  // Cancelled: the program has closed the session, and no step was finite before.
  absl::StatusOr<Gradient> TakeLocalSteps(const v1::Slot& samples, const v1::StepParameters& step,
                                          absl::Duration window_ends, GoesOn goes_on) override;
  // Whether the program answers kEvaluate; at first not.
  void SetEvaluates(bool evaluates) { evaluates_ = evaluates; }
  bool evaluates() const override { return evaluates_; }
  absl::StatusOr<double> HeldOutLoss(HeldOutText which, GoesOn goes_on) override;

 private:
  // Of a request for `samples`; adds those that are expected.
  absl::StatusOr<Answer> AskForRound(Request request);

  ModuleLearner* const learner_;
  HandOver* const program_;
  PhaseClock* const phases_;
  v1::Slot expected_;  // not yet sent to the program
  bool evaluates_ = false;
};

}  // namespace distro::worker
