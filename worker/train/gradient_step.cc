#include "worker/train/gradient_step.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

void Divide(float divisor, TensorBuffer* buffer) {
  for (int i = 0; i < buffer->tensors(); ++i) {
    for (float& value : buffer->tensor(i)) value /= divisor;
  }
}

}  // namespace

GradientStep::GradientStep(const Layout& layout, int micro_batch_samples, bool overlap, Parts parts)
    : micro_batch_samples_(micro_batch_samples), parts_(std::move(parts)), buffer_(layout) {
  if (overlap) lookahead_.emplace(layout);
}

absl::StatusOr<Gradient> GradientStep::Compute(const v1::Slot& slot,
                                               const TensorBuffer& parameters) {
  Gradient gradient;
  DISTRO_RETURN_IF_ERROR(Accumulate(slot, parameters, &gradient.loss));
  PhaseScope phase(parts_.phases, Phase::kCompress);
  gradient.norm = parts_.optimizer->GradientNorm(buffer_);
  gradient.finite = std::isfinite(gradient.loss) && std::isfinite(gradient.norm);
  return gradient;
}

absl::StatusOr<Gradient> GradientStep::ComputeAhead(const v1::Slot& slot, float eta,
                                                    const TensorBuffer& parameters) {
  {
    PhaseScope phase(parts_.phases, Phase::kCompress);
    parts_.optimizer->Lookahead(eta, parameters, &*lookahead_);
  }
  return Compute(slot, *lookahead_);
}

absl::Status GradientStep::Accumulate(const v1::Slot& slot, const TensorBuffer& parameters,
                                      double* loss) {
  const int micro_batches = static_cast<int>(slot.samples()) / micro_batch_samples_;
  std::vector<int32_t> tokens;
  for (int j = 0; j < micro_batches; ++j) {
    DISTRO_RETURN_IF_ERROR(parts_.goes_on());
    {
      PhaseScope phase(parts_.phases, Phase::kData);
      parts_.samples->ReadTraining(
          slot.first_sample() + static_cast<uint64_t>(j) * micro_batch_samples_,
          micro_batch_samples_, &tokens);
    }
    PhaseScope phase(parts_.phases, Phase::kForwardBackward);
    DISTRO_ASSIGN_OR_RETURN(const double micro_batch_loss,
                            parts_.model->LossAndGradient(
                                {.tokens = tokens, .sequences = micro_batch_samples_}, parameters,
                                j == 0 ? Accumulation::kStore : Accumulation::kAdd, &buffer_));
    *loss += micro_batch_loss / micro_batches;
  }
  if (micro_batches > 1) Divide(static_cast<float>(micro_batches), &buffer_);
  return absl::OkStatus();
}

}  // namespace distro::worker
