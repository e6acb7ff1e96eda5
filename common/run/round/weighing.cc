#include "common/run/round/weighing.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/method/base/learning_rate.h"
#include "common/method/base/method.h"
#include "common/method/methods.h"
#include "common/run/sample_pool.h"

namespace distro {
namespace {

absl::Status CheckLocalSteps(const Weighing& weighing, const UpdateClaim& claim,
                             const v1::Slot& slot) {
  const uint64_t most = weighing.window == 0 ? 0 : SamplesOf(slot) / weighing.samples_a_step;
  const uint64_t least = weighing.window == 0 || claim.abstain ? 0 : 1;
  if (claim.local_steps >= least && claim.local_steps <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("local_steps: ", claim.local_steps, " is outside ",
                                                 least, " to ", most, ", which the slot of ",
                                                 slot.worker(), " has"));
}

absl::Status CheckFirstSample(const Weighing& weighing, const UpdateClaim& claim,
                              const v1::Slot& slot) {
  const bool may_say = weighing.states_slot && !claim.abstain;
  if (claim.first_sample == 0 || (may_say && claim.first_sample == slot.first_sample()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("first_sample: this update is of samples from ", claim.first_sample,
                   " on, the slot of ", slot.worker(), " begins at ", slot.first_sample()));
}

}  // namespace

Weighing WeighingOf(const v1::RunConfig& config) {
  return {.window = config.has_round_window() ? StepsOfRound(config) : 0,
          .samples_a_step = config.samples_per_worker(),
          .by_data = config.weighting() == v1::WEIGHTING_DATA,
          .states_slot = MethodOf(config).binds_updates_to_slots()};
}

absl::Status CheckClaim(const Weighing& weighing, const UpdateClaim& claim, const v1::Slot& slot) {
  DISTRO_RETURN_IF_ERROR(CheckLocalSteps(weighing, claim, slot));
  return CheckFirstSample(weighing, claim, slot);
}

int WeightOf(const Weighing& weighing, uint32_t local_steps, int data_weight) {
  if (weighing.by_data) return data_weight;
  if (weighing.window == 0 || local_steps == 0) return 1;
  return StepsWeight(static_cast<int>(local_steps), static_cast<int>(weighing.window));
}

}  // namespace distro
