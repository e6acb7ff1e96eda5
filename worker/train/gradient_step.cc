#include "worker/train/gradient_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/run/sample_pool.h"

namespace distro::worker {

GradientStep::GradientStep(int micro_batch_samples, absl::Duration hold_back, Parts parts)
    : micro_batch_samples_(micro_batch_samples),
      hold_back_(hold_back),
      parts_(std::move(parts)),
      tokens_(parts_.node->ranks()) {}

absl::StatusOr<Gradient> GradientStep::Compute(const v1::Slot& slot) {
  return ComputeAt(slot, GradientAt::kParameters);
}

absl::StatusOr<Gradient> GradientStep::ComputeAhead(const v1::Slot& slot, float eta) {
  {
    PhaseScope phase(parts_.phases, Phase::kCompress);
    DISTRO_RETURN_IF_ERROR(parts_.node->MakeLookahead(eta));
  }
  return ComputeAt(slot, GradientAt::kCopy);
}

absl::StatusOr<Gradient> GradientStep::TakeLocalSteps(const v1::Slot& slot,
                                                      const v1::StepParameters& step,
                                                      absl::Duration window_ends) {
  const Clock& clock = parts_.phases->clock();
  const absl::Duration begin = clock.MonotonicNow();
  {
    PhaseScope phase(parts_.phases, Phase::kCompress);
    DISTRO_RETURN_IF_ERROR(parts_.node->BeginLocalSteps());
  }
  const auto may_stop_again = absl::MakeCleanup([this] { must_go_on_ = false; });
  const int steps = step.deltas().inner_rate_bits_size();
  const auto samples = static_cast<uint32_t>(SamplesOf(slot) / steps);
  Gradient taken, last;
  int finite_steps = 0;
  for (int index = 0; index < steps; ++index) {
    const absl::Duration now = clock.MonotonicNow();
    if (index > 0 && now + (now - begin) / index > window_ends) break;
    if (must_go_on_ && window_ends != absl::InfiniteDuration() && !parts_.goes_on().ok()) break;
    DISTRO_ASSIGN_OR_RETURN(
        last, ComputeAt(PartOf(slot, uint64_t{samples} * index, samples), GradientAt::kCopy));
    ++taken.local_steps;
    if (!last.finite) {
      ++taken.skipped_steps;
      continue;
    }
    PhaseScope phase(parts_.phases, Phase::kCompress);
    DISTRO_RETURN_IF_ERROR(parts_.node->TakeGradient(step, index, last.norm));
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

absl::StatusOr<Gradient> GradientStep::ComputeAt(const v1::Slot& slot, GradientAt at) {
  Gradient gradient;
  DISTRO_RETURN_IF_ERROR(Accumulate(slot, at, &gradient.loss));
  PhaseScope phase(parts_.phases, Phase::kCompress);
  DISTRO_ASSIGN_OR_RETURN(
      gradient.norm,
      parts_.node->FinishGradient(static_cast<int64_t>(SamplesOf(slot)) / micro_batch_samples_));
  gradient.finite = std::isfinite(gradient.loss) && std::isfinite(gradient.norm);
  return gradient;
}

absl::Status GradientStep::Accumulate(const v1::Slot& slot, GradientAt at, double* loss) {
  absl::SleepFor(hold_back_);
  const int micro_batches = static_cast<int>(SamplesOf(slot)) / micro_batch_samples_;
  for (int first = 0; first < micro_batches; first += parts_.node->ranks()) {
    if (!must_go_on_) DISTRO_RETURN_IF_ERROR(parts_.goes_on());
    const int count = std::min(parts_.node->ranks(), micro_batches - first);
    DISTRO_ASSIGN_OR_RETURN(const std::vector<double> losses,
                            AccumulateRound(slot, at, first, count));
    for (const double micro_batch_loss : losses) *loss += micro_batch_loss / micro_batches;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> GradientStep::AccumulateRound(const v1::Slot& slot,
                                                                  GradientAt at, int first,
                                                                  int count) {
  std::vector<TokenBatch> batches;
  {
    PhaseScope phase(parts_.phases, Phase::kData);
    for (int i = 0; i < count; ++i) {
      const v1::Slot part = PartOf(slot, static_cast<uint64_t>(first + i) * micro_batch_samples_,
                                   micro_batch_samples_);
      parts_.samples->ReadTraining(part, &tokens_[i]);
      batches.push_back({.tokens = tokens_[i], .sequences = micro_batch_samples_});
    }
  }
  PhaseScope phase(parts_.phases, Phase::kForwardBackward);
  return parts_.node->GradientRound(batches, at, first == 0);
}

}  // namespace distro::worker
