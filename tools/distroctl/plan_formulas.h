// What a run will cost: bytes, seconds and memory from a model's sizes. Pure formulas; docs/tools.md, "plan", has them in
// words with their sources. Bytes a second for links, decimal units.
#pragma once

#include <cstdint>

#include "common/model_config/llama_config.h"

namespace distro::tools {

// Bytes of 16-bit gradients of all parameters: what data parallelism moves.
double GradientBytes(double parameters);

inline double TransferSeconds(double bytes, double bits_per_second) {
  return 8 * bytes / bits_per_second;
}

// What each of n peers receives a step when all send `bytes` to all: the report's All-Reduce, and its DisTrO without an
// aggregator.
double ReceivedFromAll(double bytes, int n);
// What each of n sends, and receives, in a ring All-Reduce of `bytes`; ZeRO-1 and -2 move the same.
double RingAllReduceBytes(double bytes, int n);
// ZeRO-3: parameters are gathered twice, gradients scattered once.
double Zero3Bytes(double bytes, int n);

// Bytes of a payload with `votes` of the 4096 coefficients in each of `blocks` blocks: log2 C(4096, votes) bits for where
// they are and one for each sign. A record codec's update has whole bits a block; see UpdateBytes for that.
double EntropyBytes(double blocks, int votes);
// A result that n workers made, each with k a block: lossless, with no two workers of one mind (the most there can be).
double LosslessResultBytes(double blocks, int n, int k);

enum class Strategy { kNoShard, kShardOptimizer, kShardGradOp, kFullShard };
inline constexpr Strategy kStrategies[] = {Strategy::kNoShard, Strategy::kShardOptimizer,
                                           Strategy::kShardGradOp, Strategy::kFullShard};
const char* StrategyName(Strategy strategy);

struct MemoryPlan {
  double parameters = 0;  // f32 masters
  double compute =
      0;  // 16-bit copies that forward and backward read; of full_shard two units of them
  double lookahead = 0;    // with overlap 1: the copy that the gradient is taken at
  double gradients = 0;    // f32 sums
  double momentum = 0;     // f32
  double pending = 0;      // K picks a block: 2 bytes where, 4 what
  double activations = 0;  // of one micro-batch, recomputed unit by unit
  double logits = 0;       // of one micro-batch: 16-bit, and f32 with its gradient

  double Total() const {
    return parameters + compute + lookahead + gradients + momentum + pending + activations + logits;
  }
};

struct MemoryInputs {
  int gpus = 1;         // R, of a node
  int micro_batch = 1;  // samples
  int sequence_length = 2048;
  int kept = 4;  // K
  bool overlap = true;
};

// Of one GPU, without the CUDA context and libraries' workspaces (about 1 GB). The parts live together at the peak of a
// step; a sharded part is 1 / gpus of the whole.
MemoryPlan MemoryOfGpu(const LlamaConfig& config, Strategy strategy, const MemoryInputs& inputs);

// Share of time in which a pipeline of so many stages idles, with so many micro-batches a step.
double PipelineBubble(int stages, int micro_batches);

}  // namespace distro::tools
