// The options for memory and arithmetic inside a node (docs/fsdp.md). Names as in PyTorch's FSDP.
// Plain data, without Torch.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro::worker {

enum class Sharding {
  kNoShard,         // nothing: every rank has everything
  kShardOptimizer,  // momentum
  kShardGradOp,     // gradients, momentum
  kFullShard,       // parameters, gradients, momentum
};

inline bool ShardsMomentum(Sharding sharding) { return sharding != Sharding::kNoShard; }
inline bool ShardsGradients(Sharding sharding) { return sharding >= Sharding::kShardGradOp; }
inline bool ShardsParameters(Sharding sharding) { return sharding == Sharding::kFullShard; }

enum class FloatType { kF32, kBf16 };

// What the ranks compute on.
enum class DeviceKind { kCpu, kCuda };

struct FsdpOptions {
  Sharding sharding = Sharding::kNoShard;
  // Type of the parameters for computation; master parameters, losses, norms and softmax statistics
  // are always f32. kBf16: half the gathered memory and traffic, and gradients of bf16 precision.
  FloatType param_dtype = FloatType::kF32;
  // Type of gradients sent between ranks. kBf16: half the traffic, each part rounded to 8 bits.
  // Sums within a process are f32.
  FloatType reduce_dtype = FloatType::kF32;
  // Every n-th unit is checkpointed: forward keeps nothing, backward recomputes it. 0: none, 1:
  // every unit. Saves memory for activations; 1 costs a second forward.
  int checkpoint_every = 0;
  // Units gathered ahead of the one that computes. 0: communication and computation alternate;
  // every further unit costs its gathered memory.
  int prefetch_units = 1;
  // Reduce gradients after every round of micro-batches (one per rank), or once per step. Once per
  // step is less traffic, and only possible if gradients are not sharded; after every round the
  // sums have the bits of one rank that accumulates.
  bool reduce_every_micro_batch = true;
  // Keep master parameters and momentum in host memory, where the CPU compresses and applies; with
  // GPUs only. GPUs then hold gathered parameters and gradients; every step copies parameters in
  // and gradients out.
  bool cpu_offload = false;
};

// Parses no_shard | shard_optimizer | shard_grad_op | full_shard, f32 | bf16, cpu | cuda.
// InvalidArgument names the value and the allowed ones.
absl::StatusOr<Sharding> ParseSharding(absl::string_view name);
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name);
absl::StatusOr<FloatType> ParseFloatType(absl::string_view name);
absl::string_view Name(Sharding sharding);
absl::string_view Name(FloatType type);
absl::string_view Name(DeviceKind kind);

// The param_dtype of a worker that is not told one: bf16 on a GPU, where products of f32 take 15
// times as long (data sheet of the H100: 67 and 989 TFLOP/s), f32 on a CPU.
inline FloatType DefaultParamDtype(DeviceKind device) {
  return device == DeviceKind::kCuda ? FloatType::kBf16 : FloatType::kF32;
}
inline int BytesOf(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

// InvalidArgument names the worker's flag: a negative number, one reduction per step with sharded
// gradients, offload on a CPU.
absl::Status Validate(const FsdpOptions& options, DeviceKind device);

}  // namespace distro::worker
