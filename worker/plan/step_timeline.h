// Simulates UnitDriver in one round of micro-batches, to find the moments at which a rank needs
// memory and how much. Implementation detail of memory_plan.h. Pure, without Torch.
#pragma once

#include <cstdint>
#include <string>

#include "worker/plan/memory_plan.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

struct Moment {
  std::string phase;
  int64_t gathered = 0;
  int64_t activations = 0;
  int64_t workspace = 0;
  int64_t total() const { return gathered + activations + workspace; }
};

// The moment that needs most. `shards`: of the request's units for its ranks.
Moment LargestMoment(const MemoryRequest& request, const ShardPlan& shards);

}  // namespace distro::worker
