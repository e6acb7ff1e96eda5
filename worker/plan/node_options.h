// The options of a node: the number of ranks, and how they share the model (docs/fsdp.md). Plain
// data.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "worker/plan/fsdp_options.h"

namespace distro::worker {

// The parameters at which a gradient is computed.
enum class GradientAt {
  kParameters,
  kCopy,  // the worker's copy: one step ahead (overlap), or after local steps
};

inline constexpr int kMaxRanks = 1024;

// In place of a number of samples of a micro-batch: the largest that fits
// (worker/train/micro_batch.h).
inline constexpr int kAutoMicroBatch = -1;

struct NodeOptions {
  DeviceKind device = DeviceKind::kCpu;
  // Number of ranks: threads that each compute a part of a round's samples; at most one per GPU. 0:
  // one, or one per GPU.
  int ranks = 0;
  // Torch's threads per rank.
  int torch_threads = 1;
  FsdpOptions fsdp = {};
  // How long ranks wait for each other. Must exceed the largest difference between two ranks' work:
  // a rank without a micro-batch waits for a whole forward and backward pass of the others.
  absl::Duration rank_timeout = absl::Minutes(30);
  // Device memory that a rank may use; 0: the GPU's free memory, or the host's for all ranks
  // together.
  uint64_t memory_limit_bytes = 0;
};

}  // namespace distro::worker
