// Checks the claim of an update, and computes its weight (docs/algorithm.md, "Combining";
// docs/speeds.md; docs/local_data.md). Pure; plain data.
//
//   const Weighing weighing = WeighingOf(config);
//   CheckClaim(weighing, claim, slot)                      // of each update
//   WeightOf(weighing, claim.local_steps, data_weight)     // DataWeights has the last
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "distro/v1/run.pb.h"

namespace distro {

// What determines the weight of an update.
struct Weighing {
  uint32_t window = 0;  // local steps of a full update in a run with a window; 0: there is none
  uint32_t samples_a_step = 1;
  bool by_data = false;      // the number of the workers' own tokens (DataWeights)
  bool states_slot = false;  // updates may state their slot

  bool all_alike() const { return window == 0 && !by_data; }
};
Weighing WeighingOf(const v1::RunConfig& config);

// The fields of UploadHeader.
struct UpdateClaim {
  uint32_t local_steps = 0;
  uint64_t first_sample = 0;  // 0: not stated
  bool abstain = false;
};

// InvalidArgument: more local steps than the worker's slot has samples for, or samples of another
// slot.
absl::Status CheckClaim(const Weighing& weighing, const UpdateClaim& claim, const v1::Slot& slot);

// The weight, 1 to 15, of an update of `local_steps` steps. `data_weight`: that of its worker, used
// if by_data.
int WeightOf(const Weighing& weighing, uint32_t local_steps, int data_weight);

}  // namespace distro
