#include "worker/python/module_objective.h"

#include <cmath>

#include "common/base/status_macros.h"

namespace distro::worker {

absl::StatusOr<Answer> ModuleObjective::AskForRound(Request request) {
  PhaseScope phase(phases_, Phase::kForwardBackward);  // includes what else the program does
  request.kind = Request::Kind::kRound;
  request.expected = std::exchange(expected_, {});
  return program_->Ask(std::move(request));
}

absl::StatusOr<Gradient> ModuleObjective::GradientOf(const v1::Slot& samples, GradientAt at,
                                                     GoesOn goes_on) {
  DISTRO_RETURN_IF_ERROR(goes_on());
  if (at == GradientAt::kParameters) DISTRO_RETURN_IF_ERROR(learner_->BeginLocalSteps());
  DISTRO_ASSIGN_OR_RETURN(const Answer answer, AskForRound({.samples = samples, .rates = {0}}));
  PhaseScope phase(phases_, Phase::kCompress);
  Gradient gradient = {.loss = answer.value};
  DISTRO_ASSIGN_OR_RETURN(gradient.norm, learner_->GradientNorm());
  gradient.finite = std::isfinite(gradient.loss) && std::isfinite(gradient.norm);
  return gradient;
}

absl::StatusOr<Gradient> ModuleObjective::TakeLocalSteps(const v1::Slot& samples,
                                                         const v1::StepParameters& step,
                                                         absl::Duration window_ends,
                                                         GoesOn goes_on) {
  DISTRO_RETURN_IF_ERROR(goes_on());
  DISTRO_ASSIGN_OR_RETURN(const Answer answer, AskForRound({.samples = samples,
                                                            .rates = learner_->rule().rates(step),
                                                            .clip_norm = step.clip_norm(),
                                                            .window_ends = window_ends}));
  learner_->CountSteps(answer.steps - answer.skipped);
  return Gradient{.loss = answer.value,
                  .norm = answer.norm,
                  .finite = answer.skipped < answer.steps,
                  .local_steps = answer.steps,
                  .skipped_steps = answer.skipped};
}

absl::StatusOr<double> ModuleObjective::HeldOutLoss(HeldOutText /*which*/, GoesOn goes_on) {
  DISTRO_RETURN_IF_ERROR(goes_on());
  DISTRO_RETURN_IF_ERROR(learner_->BeginLocalSteps());
  DISTRO_ASSIGN_OR_RETURN(const Answer answer, program_->Ask({.kind = Request::Kind::kEvaluate}));
  return answer.value;
}

}  // namespace distro::worker
