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
  // Of the copy that computes; master parameters, losses, norms and softmax statistics are f32 in
  // any case. kBf16: half the gathered memory and traffic, and gradients of bf16's precision.
  FloatType param_dtype = FloatType::kF32;
  // In which gradients travel between ranks; kBf16: half the traffic, each part rounded to 8 bits.
  // Sums are f32 in process.
  FloatType reduce_dtype = FloatType::kF32;
  // Every how many units forward keeps nothing and backward computes it again; 0: none, 1: every
  // unit. Less memory for activations; 1 costs a second forward.
  int checkpoint_every = 0;
  // Units that are gathered ahead of the one that computes. 0: communication and computation take
  // turns; every further unit costs its gathered memory.
  int prefetch_units = 1;
  // Gradients are reduced after every round of micro-batches (one a rank), or once a step. Once is
  // less traffic and only possible while gradients are not sharded; after every one the sums have
  // the bits of one rank that accumulates.
  bool reduce_every_micro_batch = true;
  // Master parameters and momentum stay in the host's memory, where its CPU compresses and applies;
  // GPUs only. They then hold what computes, and gradients; every step moves parameters in and
  // gradients out.
  bool cpu_offload = false;
};

// no_shard | shard_optimizer | shard_grad_op | full_shard, f32 | bf16, cpu | cuda. InvalidArgument
// names the value and what there is.
absl::StatusOr<Sharding> ParseSharding(absl::string_view name);
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name);
absl::StatusOr<FloatType> ParseFloatType(absl::string_view name);
absl::string_view Name(Sharding sharding);
absl::string_view Name(FloatType type);
absl::string_view Name(DeviceKind kind);
inline int BytesOf(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

// InvalidArgument names the worker's flag: a negative number, one reduction a step of sharded
// gradients, offload on a CPU.
absl::Status Validate(const FsdpOptions& options, DeviceKind device);

}  // namespace distro::worker
