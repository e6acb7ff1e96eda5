#include "worker/plan/fsdp_options.h"

#include "absl/strings/str_cat.h"

namespace distro::worker {

absl::StatusOr<Sharding> ParseSharding(absl::string_view name) {
  for (const Sharding sharding : {Sharding::kNoShard, Sharding::kShardOptimizer,
                                  Sharding::kShardGradOp, Sharding::kFullShard}) {
    if (name == Name(sharding)) return sharding;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "sharding: '", name, "' is none of no_shard, shard_optimizer, shard_grad_op, full_shard"));
}

absl::StatusOr<FloatType> ParseFloatType(absl::string_view name) {
  for (const FloatType type : {FloatType::kF32, FloatType::kBf16}) {
    if (name == Name(type)) return type;
  }
  return absl::InvalidArgumentError(absl::StrCat("dtype: '", name, "' is none of f32, bf16"));
}

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name) {
  for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (name == Name(kind)) return kind;
  }
  return absl::InvalidArgumentError(absl::StrCat("device: '", name, "' is none of cpu, cuda"));
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

absl::string_view Name(DeviceKind kind) { return kind == DeviceKind::kCpu ? "cpu" : "cuda"; }

absl::Status Validate(const FsdpOptions& options, DeviceKind device) {
  if (options.checkpoint_every < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--activation_checkpointing: ", options.checkpoint_every, " is below 0"));
  }
  if (options.prefetch_units < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--prefetch_units: ", options.prefetch_units, " is below 0"));
  }
  if (!options.reduce_every_micro_batch && ShardsGradients(options.sharding)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--reduce_every_micro_batch: false is not possible with --sharding ",
                     Name(options.sharding), ", which keeps no whole gradient"));
  }
  if (options.cpu_offload && device == DeviceKind::kCpu) {
    return absl::InvalidArgumentError(
        "--cpu_offload: it moves parameters and momentum from a GPU to the host, and --device cpu "
        "has them there");
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
