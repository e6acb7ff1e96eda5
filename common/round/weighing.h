// Checks the claim of an update, and computes its weight (docs/algorithm.md, "Aggregator";
// docs/speeds.md; docs/local_data.md). The aggregator and the aggregator inside a process use it.
// Pure; plain data.
//
//   const Weighing weighing = WeighingOf(config);
//   CheckClaim(weighing, claim, slot)                      // of each update
//   WeightOf(weighing, claim.local_steps, data_weight)     // DataWeights has the last
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "distro/v1/run.pb.h"

namespace distro {

// What makes an update of the run count more than another.
struct Weighing {
  uint32_t window = 0;  // local steps of a full update in a run with a window; 0: there is none
  uint32_t samples_a_step = 1;
  bool by_data = false;  // the workers' own tokens do (DataWeights)
  bool deltas = false;   // updates may say of which slot they are

  bool all_alike() const { return window == 0 && !by_data; }
};
Weighing WeighingOf(const v1::RunConfig& config);

// As UploadHeader has it.
struct UpdateClaim {
  uint32_t local_steps = 0;
  uint64_t first_sample = 0;  // 0: it does not say
  bool abstain = false;
};

// InvalidArgument: local steps that the worker's slot has no samples for; samples of another slot.
absl::Status CheckClaim(const Weighing& weighing, const UpdateClaim& claim, const v1::Slot& slot);

// 1 to 15, of an update of so many local steps. `data_weight`: of its worker, where that counts.
int WeightOf(const Weighing& weighing, uint32_t local_steps, int data_weight);

}  // namespace distro
