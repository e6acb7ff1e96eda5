#include "common/method/base/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace distro {

uint32_t StepsOfRound(const v1::RunConfig& config) {
  return std::max<uint32_t>(1, config.local_steps());
}

namespace {

// A cosine: its start, end and target, in steps and f64.
struct Decline {
  uint64_t first = 0;
  uint64_t end = 0;
  double from = 0;
  double to = 0;

  double RateAt(uint64_t step) const {
    if (end <= first) return to;
    const double angle = std::numbers::pi * static_cast<double>(std::min(step, end) - first) /
                         static_cast<double>(end - first);
    return to + (from - to) * (1 + std::cos(angle)) / 2;
  }
};

uint64_t WarmupSteps(const v1::RunConfig& config) {
  return config.warmup_rounds() * StepsOfRound(config);
}

// The first step of an extension's cosine; an extension does not shorten the warm-up.
uint64_t FirstStep(const v1::RunConfig& config, uint64_t from_round) {
  return std::max(from_round * StepsOfRound(config), WarmupSteps(config));
}

double RateAt(const v1::RunConfig& config, uint64_t step, const v1::Extension* extension) {
  const uint64_t steps_a_round = StepsOfRound(config);
  const double peak = config.peak_learning_rate();
  const uint64_t warmup = WarmupSteps(config);
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (extension != nullptr && step >= FirstStep(config, extension->from_round())) {
    return Decline{.first = FirstStep(config, extension->from_round()),
                   .end = extension->rounds() * steps_a_round,
                   .from = extension->from_rate(),
                   .to = config.min_learning_rate()}
        .RateAt(step);
  }
  return Decline{.first = warmup,
                 .end = config.rounds() * steps_a_round,
                 .from = peak,
                 .to = config.min_learning_rate()}
      .RateAt(step);
}

}  // namespace

float LearningRate(const v1::RunConfig& config, uint64_t step, const v1::Extension* extension) {
  return static_cast<float>(RateAt(config, step, extension));
}

v1::Extension ExtendSchedule(const v1::RunConfig& config, const v1::Extension* before, RoundId from,
                             uint64_t rounds) {
  v1::Extension extension;
  extension.set_rounds(rounds);
  extension.set_from_round(from.value());
  extension.set_from_rate(RateAt(config, FirstStep(config, from.value()), before));
  return extension;
}

}  // namespace distro
