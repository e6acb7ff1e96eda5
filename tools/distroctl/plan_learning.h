// What workers of a run of deltas learn together, beside one alone: measured with 0.31 M parameters
// and muon_momentum 0.9 (docs/learning.md, "Alone or together"), no promise for another model.
// Pure.
#pragma once

#include <optional>

namespace distro::tools {

struct PlanLearning {
  double gain = 0;      // the share that is kept of All-Reduce's gain over one worker alone
  double machines = 0;  // how many times their steps one worker alone needs for the same loss
  bool operator==(const PlanLearning&) const = default;
};

// H and K that are worth comparing.
struct DeltasChoice {
  int local_steps = 0;
  int kept = 0;
  PlanLearning three;  // workers
  PlanLearning eight;
};
inline constexpr DeltasChoice kDeltasChoices[] = {
    {5, 128, {0.86, 2.6}, {0.72, 4.3}},
    {20, 128, {0.63, 2.0}, {0.59, 3.0}},
    {5, 4096, {0.91, 2.7}, {0.78, 5.2}},
};

// The shares, also of machines by worker, are those of three for fewer workers, and between three
// and eight on a line over log W. nullopt: not measured for this H, K or W.
std::optional<PlanLearning> LearningOf(int local_steps, int kept, int workers);

}  // namespace distro::tools
