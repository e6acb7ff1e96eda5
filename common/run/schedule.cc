#include "common/run/schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace distro {

uint32_t StepsOfRound(const v1::RunConfig& config) {
  return std::max<uint32_t>(1, config.local_steps());
}

float LearningRate(const v1::RunConfig& config, uint64_t step) {
  const uint64_t steps_a_round = StepsOfRound(config);
  const double peak = config.peak_learning_rate();
  const double low = config.min_learning_rate();
  const uint64_t warmup = config.warmup_rounds() * steps_a_round;
  const uint64_t steps = config.rounds() * steps_a_round;
  const uint64_t t = std::min(step, steps);
  if (t < warmup) {
    return static_cast<float>(peak * static_cast<double>(t + 1) / static_cast<double>(warmup));
  }
  const double angle =
      std::numbers::pi * static_cast<double>(t - warmup) / static_cast<double>(steps - warmup);
  return static_cast<float>(low + (peak - low) * (1 + std::cos(angle)) / 2);
}

std::vector<float> LocalRates(const v1::RunConfig& config, RoundId round) {
  std::vector<float> rates;
  for (uint64_t h = 0; h < config.local_steps(); ++h)
    rates.push_back(LearningRate(config, round.value() * config.local_steps() + h));
  return rates;
}

v1::StepParameters SignStep(const v1::RunConfig& config, RoundId round) {
  const float eta = LearningRate(config, round.value());
  const float eta_lambda = static_cast<float>(static_cast<double>(eta) * config.weight_decay());
  v1::StepParameters step;
  step.set_eta_bits(std::bit_cast<uint32_t>(eta));
  step.set_eta_lambda_bits(std::bit_cast<uint32_t>(eta_lambda));
  step.set_beta(static_cast<float>(config.beta()));
  step.set_clip_norm(static_cast<float>(config.clip_norm()));
  step.set_kept_per_block(config.kept_per_block());
  return step;
}

uint32_t SamplesOfRound(const v1::RunConfig& config) {
  return config.samples_per_worker() * StepsOfRound(config);
}

std::vector<v1::Slot> AssignSlots(absl::Span<const std::string> workers, uint64_t round,
                                  uint32_t samples, SamplePool* pool) {
  const size_t first = pool->has_unread() && !workers.empty() ? round % workers.size() : 0;
  std::vector<v1::Slot> slots(workers.size());
  for (size_t i = 0; i < workers.size(); ++i) {
    const size_t at = (first + i) % workers.size();
    slots[at] = pool->Take(workers[at], samples);
  }
  return slots;
}

}  // namespace distro
