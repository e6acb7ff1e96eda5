#include "worker/plan/memory_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/plan/matrix_waves.h"
#include "worker/plan/shard_plan.h"
#include "worker/plan/step_timeline.h"

namespace distro::worker {
namespace {

constexpr int64_t kF32 = 4;

std::string Megabytes(int64_t bytes) {
  return absl::StrFormat("%.1fMB", static_cast<double>(bytes) / 1e6);
}

int64_t Blocks(const RankShard& shard) {
  int64_t blocks = 0;
  for (const ShardRun& run : shard.runs) blocks += run.matrix.Blocks();
  return blocks;
}

RankMemoryPlan PlanRank(const MemoryRequest& request, const Moment& moment, const RankShard& shard,
                        const RankShard& whole) {
  const FsdpOptions& options = request.options;
  const auto bytes = [&](bool sharded) { return kF32 * (sharded ? shard : whole).elements(); };
  const bool optimizer = request.block_bytes > 0;
  const RankShard& momentum = ShardsMomentum(options.sharding) ? shard : whole;
  RankMemoryPlan plan;
  const auto at = [&](MemoryCategory category) -> int64_t& {
    return plan.bytes[static_cast<size_t>(category)];
  };
  at(MemoryCategory::kParameters) = bytes(ShardsParameters(options.sharding));
  at(MemoryCategory::kGradients) = bytes(ShardsGradients(options.sharding));
  at(MemoryCategory::kMomentum) =
      kF32 * request.element_arrays * momentum.elements() + request.block_bytes * Blocks(momentum);
  const int64_t copy = request.copy ? bytes(ShardsParameters(options.sharding)) : 0;
  if (options.cpu_offload) {
    for (const MemoryCategory category : {MemoryCategory::kParameters, MemoryCategory::kMomentum}) {
      plan.host_bytes += at(category);
      at(category) = 0;
    }
    plan.host_bytes += copy + (optimizer ? at(MemoryCategory::kGradients) : 0);
  }
  at(MemoryCategory::kGathered) = moment.gathered;
  at(MemoryCategory::kActivations) = moment.activations;
  at(MemoryCategory::kWorkspace) =
      moment.workspace + (options.cpu_offload ? 0 : copy) + request.library_bytes;
  for (const int64_t category : plan.bytes) plan.device_bytes += category;
  plan.phase = moment.phase;
  return plan;
}

struct Need {
  int64_t bytes = 0;       // must fit into available.bytes - reserve_bytes
  int rank = 0;            // the rank that needs most
  int64_t host_bytes = 0;  // of all ranks, with cuda
};

Need NeedOf(const MemoryPlan& plan, const AvailableMemory& available) {
  Need need;
  int64_t all = 0;
  for (int rank = 0; rank < static_cast<int>(plan.ranks.size()); ++rank) {
    const int64_t bytes =
        plan.ranks[rank].device_bytes + (available.cuda ? 0 : plan.ranks[rank].host_bytes);
    all += bytes;
    if (available.cuda) need.host_bytes += plan.ranks[rank].host_bytes;
    if (bytes > need.bytes) {
      need.bytes = bytes;
      need.rank = rank;
    }
  }
  if (available.shared) need.bytes = all;
  return need;
}

int64_t Usable(const AvailableMemory& available) {
  return std::max<int64_t>(available.bytes - available.reserve_bytes, 0);
}

bool Fits(const Need& need, const AvailableMemory& available) {
  return need.bytes <= Usable(available) && need.host_bytes <= available.host_bytes;
}

std::string Shortage(const MemoryRequest& request, const Need& need,
                     const AvailableMemory& available) {
  if (need.bytes <= Usable(available)) {
    return absl::StrCat(request.ranks, " ranks need ", Megabytes(need.host_bytes),
                        " of the host for what --cpu_offload puts there, and there are ",
                        Megabytes(available.host_bytes));
  }
  const bool others = need.bytes <= Usable(available) + available.held_bytes;
  return absl::StrCat(
      available.shared ? absl::StrCat(request.ranks, " ranks need ") : "a rank needs ",
      Megabytes(need.bytes), " and there are ", Megabytes(Usable(available)), " (",
      Megabytes(available.bytes), " less a reserve of ", Megabytes(available.reserve_bytes), ")",
      others ? absl::StrCat(" on a GPU of which others hold ", Megabytes(available.held_bytes),
                            " (nvidia-smi names them): end them, or choose another GPU with "
                            "CUDA_VISIBLE_DEVICES")
             : "");
}

// Cheapest first: more sharding, then recomputation, then the host's memory.
std::vector<FsdpOptions> Remedies(const MemoryRequest& request, bool cuda) {
  std::vector<FsdpOptions> remedies;
  for (const bool offload : {false, true}) {
    for (const bool checkpoint : {false, true}) {
      for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                      Sharding::kShardGradOp, Sharding::kFullShard}) {
        FsdpOptions options = request.options;
        if (sharding < options.sharding || (request.ranks == 1 && sharding > options.sharding) ||
            (offload && !cuda)) {
          continue;
        }
        options.sharding = sharding;
        options.reduce_every_micro_batch |= ShardsGradients(sharding);
        if (checkpoint) options.checkpoint_every = 1;
        options.cpu_offload |= offload;
        remedies.push_back(options);
      }
    }
  }
  return remedies;
}

std::string Describe(const FsdpOptions& options) {
  return absl::StrCat("--sharding ", Name(options.sharding), " --activation_checkpointing ",
                      options.checkpoint_every, options.cpu_offload ? " --cpu_offload" : "");
}

}  // namespace

std::string MemoryPlan::Describe(int rank) const {
  const RankMemoryPlan& plan = ranks[rank];
  std::string line = absl::StrCat("rank=", rank, " total=", Megabytes(plan.device_bytes),
                                  " phase=\"", plan.phase, "\"");
  for (int i = 0; i < kMemoryCategories; ++i) {
    absl::StrAppend(&line, " ", Name(static_cast<MemoryCategory>(i)), "=",
                    Megabytes(plan.bytes[i]));
  }
  if (plan.host_bytes > 0) absl::StrAppend(&line, " host=", Megabytes(plan.host_bytes));
  return line;
}

absl::StatusOr<MemoryPlan> PlanMemory(const MemoryRequest& request) {
  DISTRO_ASSIGN_OR_RETURN(const ShardPlan shards,
                          ShardPlan::Create(*request.layout, request.units, request.ranks));
  DISTRO_ASSIGN_OR_RETURN(const ShardPlan whole,
                          ShardPlan::Create(*request.layout, request.units, 1));
  const Moment of_gradient = LargestMoment(request, shards);
  const std::vector<MatrixWave> waves = MatrixWaves(
      *request.layout, request.needs_whole, request.ranks, request.cuda ? kGpuBatchElements : 0);
  const ShardPlan* const held = ShardsMomentum(request.options.sharding) ? &shards : nullptr;
  MemoryPlan plan;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const Moment step = {.phase = "inner step",
                         .workspace = WaveScratchBytes(*request.layout, waves, held, rank)};
    const Moment& moment = step.total() > of_gradient.total() ? step : of_gradient;
    plan.ranks.push_back(PlanRank(request, moment, shards.shard(rank), whole.shard(0)));
  }
  return plan;
}

absl::Status CheckMemory(const MemoryRequest& request, const AvailableMemory& available) {
  DISTRO_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(request));
  const Need need = NeedOf(plan, available);
  if (Fits(need, available)) return absl::OkStatus();
  const std::string message =
      absl::StrCat(Shortage(request, need, available), ": ", plan.Describe(need.rank));
  for (const FsdpOptions& options : Remedies(request, available.cuda)) {
    MemoryRequest other = request;
    other.options = options;
    DISTRO_ASSIGN_OR_RETURN(const MemoryPlan remedy, PlanMemory(other));
    const Need less = NeedOf(remedy, available);
    if (!Fits(less, available)) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat(message, "; ", Describe(options), " would fit with ", Megabytes(less.bytes)));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      message,
      "; no strategy would fit: take smaller micro-batches, more devices or a smaller model"));
}

}  // namespace distro::worker
