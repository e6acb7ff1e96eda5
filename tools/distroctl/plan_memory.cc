#include "tools/distroctl/plan_memory.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/plan/memory_plan.h"
#include "worker/rules/update_rule.h"

namespace distro::tools {
namespace {

constexpr double kReservedBytes = 1e9;  // CUDA context, NCCL

PlanMemory MemoryOf(worker::Sharding sharding, const worker::MemoryPlan& plan,
                    const PlanOptions& o) {
  const auto by_device_bytes = [](const worker::RankMemoryPlan& a,
                                  const worker::RankMemoryPlan& b) {
    return a.device_bytes < b.device_bytes;
  };
  const worker::RankMemoryPlan& gpu =
      *std::max_element(plan.ranks.begin(), plan.ranks.end(), by_device_bytes);
  return {.sharding = sharding,
          .gpu = gpu,
          .fits = static_cast<double>(gpu.device_bytes) + kReservedBytes <= 1e9 * o.gpu_memory_gb};
}

}  // namespace

absl::StatusOr<std::vector<PlanMemory>> PlanMemories(const v1::RunConfig& config,
                                                     const Architecture& model,
                                                     const Layout& layout, const PlanOptions& o) {
  DISTRO_ASSIGN_OR_RETURN(const worker::FloatType type, worker::ParseFloatType(o.param_dtype));
  const worker::UpdateRuleKind rule = worker::RuleOf(config, &layout, model);
  worker::MemoryRequest request = {
      .model = &model,
      .layout = &layout,
      .units = UnitTensors(model, layout.manifest()),
      .ranks = o.gpus,
      .options = {.param_dtype = type, .checkpoint_every = o.activation_checkpointing},
      .sequences = o.micro_batch,
      .positions = o.sequence_length,
      .cuda = true,
      .element_arrays = rule.element_arrays,
      .block_bytes = rule.PendingBytes(static_cast<int>(config.kept_per_block())),
      .copy = config.overlap() == 1 || rule.takes_local_steps,
      .library_bytes = worker::kCublasHandles * worker::kCublasWorkspaceBytes,
      .needs_whole = rule.needs_whole};
  std::vector<PlanMemory> memories;
  for (const worker::Sharding sharding :
       {worker::Sharding::kNoShard, worker::Sharding::kShardOptimizer,
        worker::Sharding::kShardGradOp, worker::Sharding::kFullShard}) {
    request.options.sharding = sharding;
    DISTRO_ASSIGN_OR_RETURN(const worker::MemoryPlan plan, worker::PlanMemory(request));
    memories.push_back(MemoryOf(sharding, plan, o));
  }
  return memories;
}

}  // namespace distro::tools
