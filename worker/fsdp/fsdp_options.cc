#include "worker/fsdp/fsdp_options.h"

#include "absl/strings/str_cat.h"

namespace distro::worker {

absl::StatusOr<Sharding> ParseSharding(absl::string_view name) {
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                  Sharding::kShardGradOp, Sharding::kFullShard}) {
    if (name == Name(sharding)) return sharding;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "sharding is '", name, "'; there are no_shard, shard_optimizer, shard_grad_op, full_shard"));
}

absl::StatusOr<FloatType> ParseFloatType(absl::string_view name) {
  for (const FloatType type : {FloatType::kF32, FloatType::kBf16}) {
    if (name == Name(type)) return type;
  }
  return absl::InvalidArgumentError(absl::StrCat("dtype is '", name, "'; there are f32, bf16"));
}

absl::string_view Name(Sharding sharding) {
  switch (sharding) {
    case Sharding::kNoShard:
      return "no_shard";
    case Sharding::kShardOptimizer:
      return "shard_optimizer";
    case Sharding::kShardGradOp:
      return "shard_grad_op";
    case Sharding::kFullShard:
      return "full_shard";
  }
  return "";
}

absl::string_view Name(FloatType type) { return type == FloatType::kF32 ? "f32" : "bf16"; }

absl::Status Validate(const FsdpOptions& options, bool cuda) {
  if (options.checkpoint_every < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint_every is ", options.checkpoint_every, "; it is 0 or more"));
  }
  if (options.prefetch_units < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefetch_units is ", options.prefetch_units, "; it is 0 or more"));
  }
  if (!options.reduce_every_micro_batch && ShardsGradients(options.sharding)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sharding ", Name(options.sharding),
                     " has no room for whole gradients: it reduces after every micro-batch"));
  }
  if (options.cpu_offload && !cuda) {
    return absl::InvalidArgumentError(
        "cpu_offload moves parameters and momentum from a GPU to the host; this worker computes "
        "on the CPU");
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
