#include "worker/train/gradient_step.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/run/sample_pool.h"

namespace distro::worker {

GradientStep::GradientStep(Dependencies deps) : deps_(std::move(deps)) {}

absl::StatusOr<Gradient> GradientStep::Compute(const v1::Slot& slot) {
  return GradientOf(slot, GradientAt::kParameters);
}

absl::StatusOr<Gradient> GradientStep::ComputeAhead(const v1::Slot& slot, float eta) {
  {
    PhaseScope phase(deps_.phases, Phase::kCompress);
    DISTRO_RETURN_IF_ERROR(deps_.learner->MakeLookahead(eta));
  }
  return GradientOf(slot, GradientAt::kCopy);
}

absl::StatusOr<Gradient> GradientStep::TakeLocalSteps(const v1::Slot& slot,
                                                      const v1::StepParameters& step,
                                                      absl::Duration window_ends) {
  const Clock& clock = deps_.phases->clock();
  const absl::Duration begin = clock.MonotonicNow();
  {
    PhaseScope phase(deps_.phases, Phase::kCompress);
    DISTRO_RETURN_IF_ERROR(deps_.learner->BeginLocalSteps());
  }
  if (deps_.objective->takes_local_steps())
    return deps_.objective->TakeLocalSteps(slot, step, window_ends, deps_.goes_on);
  const auto may_stop_again = absl::MakeCleanup([this] { must_go_on_ = false; });
  const auto steps = static_cast<int>(deps_.learner->rule().rates(step).size());
  const auto samples = static_cast<uint32_t>(SamplesOf(slot) / steps);
  Gradient taken, last;
  int finite_steps = 0;
  for (int index = 0; index < steps; ++index) {
    const absl::Duration now = clock.MonotonicNow();
    if (index > 0 && now + (now - begin) / index > window_ends) break;
    if (must_go_on_ && window_ends != absl::InfiniteDuration() && !deps_.goes_on().ok()) break;
    DISTRO_ASSIGN_OR_RETURN(
        last, GradientOf(PartOf(slot, uint64_t{samples} * index, samples), GradientAt::kCopy));
    ++taken.local_steps;
    if (!last.finite) {
      ++taken.skipped_steps;
      continue;
    }
    PhaseScope phase(deps_.phases, Phase::kCompress);
    DISTRO_RETURN_IF_ERROR(deps_.learner->TakeStep(step, index, last.norm));
    must_go_on_ = true;
    taken.loss += last.loss;
    taken.norm = last.norm;
    ++finite_steps;
  }
  last.local_steps = taken.local_steps;
  last.skipped_steps = taken.skipped_steps;
  if (finite_steps == 0) return last;
  taken.loss /= finite_steps;
  return taken;
}

absl::StatusOr<Gradient> GradientStep::GradientOf(const v1::Slot& slot, GradientAt at) {
  return deps_.objective->GradientOf(
      slot, at, [this] { return must_go_on_ ? absl::OkStatus() : deps_.goes_on(); });
}

}  // namespace distro::worker
