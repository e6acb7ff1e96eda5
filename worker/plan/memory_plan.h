// Predicts the memory of a node's ranks before anything is allocated (docs/fsdp.md, "Memory"): by
// rank and category, at the peak of a step. Simulates UnitDriver unit by unit, and then the steps
// of the rule. Pure, without Torch.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_counter.h"

namespace distro::worker {

// cuBLAS's workspace for each of its handles, and the handles of a rank: its thread computes
// forward passes and steps, autograd's thread of the device the backward pass.
inline constexpr int64_t kCublasWorkspaceBytes = int64_t{32} << 20;
inline constexpr int kCublasHandles = 2;

// Of the host, what a worker's process takes besides its ranks' plans: Torch's code, threads,
// buffers. Resident memory of a worker of a model of 0.4 MB on a CPU is 158 MB.
inline constexpr int64_t kProgramBytes = 160'000'000;

struct MemoryRequest {
  // Both borrowed.
  const Architecture* model = nullptr;
  const Layout* layout = nullptr;
  std::vector<std::vector<int>> units;  // of UnitTensors
  int ranks = 1;
  FsdpOptions options;
  int sequences = 1;  // of a micro-batch
  int positions = 1;  // S
  bool cuda = false;  // the ranks compute on GPUs
  // Of the update rule: the number of f32 arrays of the model's elements that it keeps, and the
  // bytes of a block's pending update. 0 bytes: only gradients, without a rule.
  int element_arrays = 0;
  int64_t block_bytes = 0;
  bool copy = false;  // a second copy of the parameters: overlap, local steps
  // Of each device, what libraries take when a rank first computes (NodeDevices::LibraryBytes).
  int64_t library_bytes = 0;
  // Tensors that a step of the rule needs whole, [tensors] (Muon); empty: none.
  std::vector<bool> needs_whole = {};
};

struct RankMemoryPlan {
  MemoryByCategory bytes = {};  // on the device, at the peak
  int64_t device_bytes = 0;     // their sum
  // On the host with cpu_offload: parameters, their copy, momentum, and the gradient to compress.
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
  int64_t reserve_bytes = 0;  // of these, for unplanned memory: context, NCCL, library workspaces
  bool shared = true;         // shared by all ranks (CPU), or separate for each rank (GPU)
  bool cuda = false;
  // Of each device, what is not free before the worker takes anything: other processes' and the
  // driver's.
  int64_t held_bytes = 0;
  // Of the host with cuda, for what all ranks offload together.
  int64_t host_bytes = std::numeric_limits<int64_t>::max();
};

// ResourceExhausted: the plan does not fit. Names rank, phase and categories, and the sharding,
// checkpointing or offload that would fit, or says that none does.
absl::Status CheckMemory(const MemoryRequest& request, const AvailableMemory& available);

}  // namespace distro::worker
