#include "common/method/signs/step.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/learning_rate.h"

namespace distro {
namespace {

absl::Status CheckFloat(absl::string_view field, uint32_t bits) {
  const float value = std::bit_cast<float>(bits);
  if (std::isfinite(value) && !std::signbit(value)) return absl::OkStatus();
  return BadField(field, absl::StrCat(value, " is not finite and at least 0"));
}

}  // namespace

v1::StepParameters SignStep(const v1::RunConfig& config, RoundId round,
                            const v1::Extension* extension) {
  const float eta = LearningRate(config, round.value(), extension);
  // Rounded here, once: replicas take the bits and do not multiply themselves.
  const float eta_lambda = static_cast<float>(static_cast<double>(eta) * config.weight_decay());
  v1::StepParameters step;
  step.set_eta_bits(std::bit_cast<uint32_t>(eta));
  step.set_eta_lambda_bits(std::bit_cast<uint32_t>(eta_lambda));
  step.set_beta(static_cast<float>(config.beta()));
  step.set_clip_norm(static_cast<float>(config.clip_norm()));
  step.set_kept_per_block(config.kept_per_block());
  return step;
}

absl::Status CheckSignStep(const v1::StepParameters& step) {
  DISTRO_RETURN_IF_ERROR(CheckFloat("step: eta_bits", step.eta_bits()));
  DISTRO_RETURN_IF_ERROR(CheckFloat("step: eta_lambda_bits", step.eta_lambda_bits()));
  if (step.beta() >= 0 && step.beta() < 1) return absl::OkStatus();
  return BadField("step: beta", absl::StrCat(step.beta(), " is outside 0 to below 1"));
}

}  // namespace distro
