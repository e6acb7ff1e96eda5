#include "worker/train/node_objective.h"

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/run/sample_pool.h"
#include "worker/train/evaluate.h"

namespace distro::worker {

NodeObjective::NodeObjective(int micro_batch_samples, absl::Duration hold_back,
                             uint64_t evaluation_samples, const Dependencies& deps)
    : micro_batch_samples_(micro_batch_samples),
      hold_back_(hold_back),
      evaluation_samples_(evaluation_samples),
      deps_(deps),
      tokens_(deps_.node->ranks()) {}

absl::StatusOr<Gradient> NodeObjective::GradientOf(const v1::Slot& slot, GradientAt at,
                                                   GoesOn goes_on) {
  Gradient gradient;
  DISTRO_RETURN_IF_ERROR(Accumulate(slot, at, goes_on, &gradient.loss));
  PhaseScope phase(deps_.phases, Phase::kCompress);
  DISTRO_ASSIGN_OR_RETURN(
      gradient.norm,
      deps_.node->FinishGradient(static_cast<int64_t>(SamplesOf(slot)) / micro_batch_samples_));
  gradient.finite = std::isfinite(gradient.loss) && std::isfinite(gradient.norm);
  return gradient;
}

absl::StatusOr<double> NodeObjective::HeldOutLoss(HeldOutText which, GoesOn goes_on) {
  const SampleReader* const samples =
      which == HeldOutText::kPublic ? deps_.public_samples : deps_.samples;
  return EvaluateHeldOut(deps_.node, *samples, evaluation_samples_, micro_batch_samples_, goes_on);
}

absl::Status NodeObjective::Accumulate(const v1::Slot& slot, GradientAt at, GoesOn goes_on,
                                       double* loss) {
  absl::SleepFor(hold_back_);
  const int micro_batches = static_cast<int>(SamplesOf(slot)) / micro_batch_samples_;
  for (int first = 0; first < micro_batches; first += deps_.node->ranks()) {
    DISTRO_RETURN_IF_ERROR(goes_on());
    const int count = std::min(deps_.node->ranks(), micro_batches - first);
    DISTRO_ASSIGN_OR_RETURN(const std::vector<double> losses,
                            AccumulateRound(slot, at, first, count));
    for (const double micro_batch_loss : losses) *loss += micro_batch_loss / micro_batches;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> NodeObjective::AccumulateRound(const v1::Slot& slot,
                                                                   GradientAt at, int first,
                                                                   int count) {
  std::vector<TokenBatch> batches;
  {
    PhaseScope phase(deps_.phases, Phase::kData);
    for (int i = 0; i < count; ++i) {
      const v1::Slot part = PartOf(slot, static_cast<uint64_t>(first + i) * micro_batch_samples_,
                                   micro_batch_samples_);
      DISTRO_RETURN_IF_ERROR(deps_.samples->ReadTraining(part, &tokens_[i]));
      batches.push_back({.tokens = tokens_[i], .sequences = micro_batch_samples_});
    }
  }
  PhaseScope phase(deps_.phases, Phase::kForwardBackward);
  return deps_.node->GradientRound(batches, at, first == 0);
}

}  // namespace distro::worker
