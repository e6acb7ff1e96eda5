#include "tools/distroctl/plan_learning.h"

#include <algorithm>
#include <cmath>

namespace distro::tools {

std::optional<PlanLearning> LearningOf(int local_steps, int kept, int workers) {
  constexpr double kFew = 3, kMost = 8;
  if (workers < 2 || workers > kMost) return std::nullopt;
  const double at = std::max(0.0, std::log(workers / kFew) / std::log(kMost / kFew));
  for (const DeltasChoice& choice : kDeltasChoices) {
    if (choice.local_steps != local_steps || choice.kept != kept) continue;
    return PlanLearning{.gain = std::lerp(choice.three.gain, choice.eight.gain, at),
                        .machines = workers * std::lerp(choice.three.machines / kFew,
                                                        choice.eight.machines / kMost, at)};
  }
  return std::nullopt;
}

}  // namespace distro::tools
