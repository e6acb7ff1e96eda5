// The objective of a Python program: it takes the gradients that it is asked for (hand_over.h).
//
// Not thread-safe: the training thread owns it. What it borrows outlives it.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
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
  // Cancelled also: the program computes no more.
  absl::StatusOr<Gradient> GradientOf(const v1::Slot& samples, GradientAt at,
                                      GoesOn goes_on) override;
  // The program evaluates by itself, when it wants.
  bool evaluates() const override { return false; }
  absl::StatusOr<double> HeldOutLoss(HeldOutText which, GoesOn goes_on) override;

 private:
  ModuleLearner* const learner_;
  HandOver* const program_;
  PhaseClock* const phases_;
  v1::Slot expected_;  // that the program was not told yet
};

}  // namespace distro::worker
