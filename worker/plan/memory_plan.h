// Predicts the memory of the ranks of a node, before anything is allocated (docs/fsdp.md,
// "Memory"): by rank and category, at the moment of a step that needs most. Follows UnitDriver unit
// by unit, and the steps of the rule after it. Pure, without Torch.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/layout.h"
#include "common/model/architecture.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_counter.h"

namespace distro::worker {

struct MemoryRequest {
  // Both borrowed.
  const Architecture* model = nullptr;
  const Layout* layout = nullptr;
  std::vector<std::vector<int>> units;  // of UnitTensors
  int ranks = 1;
  FsdpOptions options;
  int sequences = 1;  // of a micro-batch
  int positions = 1;  // S
  // Of the rule by which the worker learns: the f32 arrays of the model's elements that it keeps,
  // and what is pending of a block, in bytes. 0 bytes: gradients alone, without a rule.
  int element_arrays = 0;
  int64_t block_bytes = 0;
  bool copy = false;  // a second copy of the parameters: overlap, local steps
  // Tensors that a step of the rule needs whole, [tensors] (Muon); empty: none.
  std::vector<bool> needs_whole = {};
};

struct RankMemoryPlan {
  MemoryByCategory bytes = {};  // on the device, at the peak
  int64_t device_bytes = 0;     // their sum
  // On the host with cpu_offload: parameters, their copy, momentum, and the gradient that is
  // compressed there.
  int64_t host_bytes = 0;
  std::string phase;  // of the peak: "backward of head"
};

struct MemoryPlan {
  std::vector<RankMemoryPlan> ranks;
  // One line: rank=0 total=512.0MB phase="backward of head" parameters=... for the log.
  std::string Describe(int rank) const;
};

// InvalidArgument: as ShardPlan::Create.
absl::StatusOr<MemoryPlan> PlanMemory(const MemoryRequest& request);

struct AvailableMemory {
  int64_t bytes = 0;          // of each device, or of the host that CPU ranks share
  int64_t reserve_bytes = 0;  // of it for what is not planned: context, NCCL, library workspaces
  bool shared = true;         // all ranks together (CPU), or each rank its own (one a GPU)
  bool cuda = false;
  // Of the host with cuda, for what all ranks offload together.
  int64_t host_bytes = std::numeric_limits<int64_t>::max();
};

// ResourceExhausted: the plan does not fit; names rank, phase and categories, and the sharding,
// checkpointing or offload that would fit, or that none does.
absl::Status CheckMemory(const MemoryRequest& request, const AvailableMemory& available);

}  // namespace distro::worker
