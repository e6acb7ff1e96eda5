// The options of a node: the number of ranks, and how they share the model (docs/fsdp.md). Plain
// data.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "worker/plan/fsdp_options.h"

namespace distro::worker {

// At which parameters a gradient is taken.
enum class GradientAt {
  kParameters,
  kCopy,  // the worker's copy: one step ahead of them (overlap), or moved by its local steps
};

inline constexpr int kMaxRanks = 1024;

// In place of a number of samples of a micro-batch: the largest that fits
// (worker/train/micro_batch.h).
inline constexpr int kAutoMicroBatch = -1;

struct NodeOptions {
  DeviceKind device = DeviceKind::kCpu;
  // Threads that compute, each with a part of a round's samples; on GPUs at most one each. 0: one,
  // or one a GPU.
  int ranks = 0;
  // Of Torch, a rank.
  int torch_threads = 1;
  FsdpOptions fsdp = {};
  // How long ranks wait for each other. Longer than the largest difference between two ranks' work:
  // one without a micro-batch waits for a whole forward and backward pass of the others.
  absl::Duration rank_timeout = absl::Minutes(30);
  // Memory that a rank may use, of its device; 0: what the GPU has free, or what the host has for
  // all ranks together.
  uint64_t memory_limit_bytes = 0;
};

}  // namespace distro::worker
