#include "worker/python/module_objective.h"

#include <cmath>

#include "common/base/status_macros.h"

namespace distro::worker {

absl::StatusOr<Gradient> ModuleObjective::GradientOf(const v1::Slot& samples, GradientAt at,
                                                     GoesOn goes_on) {
  DISTRO_RETURN_IF_ERROR(goes_on());
  if (at == GradientAt::kParameters) DISTRO_RETURN_IF_ERROR(learner_->BeginLocalSteps());
  Gradient gradient;
  {
    PhaseScope phase(phases_, Phase::kForwardBackward);  // includes reading by the program
    DISTRO_ASSIGN_OR_RETURN(gradient.loss, program_->Ask({.kind = Request::Kind::kGradient,
                                                          .samples = samples,
                                                          .expected = std::exchange(expected_, {}),
                                                          .begins_round = learner_->TakeBegun()}));
  }
  PhaseScope phase(phases_, Phase::kCompress);
  DISTRO_ASSIGN_OR_RETURN(gradient.norm, learner_->GradientNorm());
  gradient.finite = std::isfinite(gradient.loss) && std::isfinite(gradient.norm);
  return gradient;
}

absl::StatusOr<double> ModuleObjective::HeldOutLoss(HeldOutText /*which*/, GoesOn goes_on) {
  DISTRO_RETURN_IF_ERROR(goes_on());
  DISTRO_RETURN_IF_ERROR(learner_->BeginLocalSteps());
  return program_->Ask({.kind = Request::Kind::kEvaluate});
}

}  // namespace distro::worker
