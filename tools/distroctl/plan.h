// `distroctl plan`: what a run of a model with so many workers will take, by either method, before
// anything is bought or started; and the formulas behind it, which docs/tools.md, "plan", has in
// words with their sources. Bits a second for links, decimal units. Memory is what workers plan
// with: worker/plan/memory_plan.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/matrix.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct PlanOptions {
  std::string model;            // a folder with config.json, or that file. Required.
  int workers = 32;             // W
  int gpus = 1;                 // R, of a node
  double gpu_memory_gb = 80;    // of each; with deltas of a worker
  double up_mbps = 10;          // of a node
  double down_mbps = 100;       // of a node
  double compute_seconds = 10;  // a step's gradient takes on a node
  // The same of workers that differ, the longest in place of compute_seconds; empty: all are alike.
  std::vector<double> step_seconds = {};
  double window_seconds = 0;           // round_window of deltas; 0: all take H steps
  uint64_t rounds = 25000;             // of the run
  std::string method = "deltas";       // or "signs"
  int local_steps = 1;                 // H; with signs 1
  int kept = 0;                        // K; 0: the method's default
  int kept_votes = 0;                  // K' of download = top; 0: lossless
  std::optional<bool> overlap = {};    // of signs alone; empty: the method's default
  int micro_batch = 1;                 // samples
  int sequence_length = 2048;          // tokens
  std::string param_dtype = "f32";     // of the worker: f32 or bf16
  int activation_checkpointing = 0;    // of the worker: every how many units; 0: none
  int micro_batches_of_pipeline = 32;  // for the comparison with a pipeline over the same links

  // InvalidArgument names the flag.
  absl::Status Validate() const;
};

// The verdict is Aborted when no strategy fits the memory.
absl::StatusOr<Report> MakePlan(const PlanOptions& given);

Command PlanCommand(const Console* console);

// Bytes of 16-bit gradients of all parameters: what data parallelism moves.
inline double GradientBytes(double parameters) { return 2 * parameters; }

inline double TransferSeconds(double bytes, double bits_per_second) {
  return 8 * bytes / bits_per_second;
}

// What each of n peers receives a step when all send `bytes` to all: the report's All-Reduce, and
// its DisTrO without an aggregator.
inline double ReceivedFromAll(double bytes, int n) { return bytes * (n - 1); }
// What each of n sends, and receives, in a ring All-Reduce of `bytes`; ZeRO-1 and -2 move the same.
inline double RingAllReduceBytes(double bytes, int n) { return 2 * bytes * (n - 1) / n; }
// ZeRO-3: parameters are gathered twice, gradients scattered once.
inline double Zero3Bytes(double bytes, int n) { return 3 * bytes * (n - 1) / n; }

// What a payload says beside where its entries are.
struct PayloadBits {
  double entry = 0;
  double block = 0;
};
inline constexpr PayloadBits kSignsBits = {.entry = 1, .block = 0};
// A block's scale is near that of the block before (docs/decisions/0019).
inline constexpr PayloadBits kDeltaUpdateBits = {.entry = 1, .block = 3};
// 95 to 98 % of the entries are of level 0 (docs/payload_format.md, "How near the entropy").
inline constexpr PayloadBits kDeltaResultBits = {.entry = 1.3, .block = 3};

// Bytes of a payload with `entries` of the 4096 positions in each of `blocks` blocks: log2 C(4096,
// entries) bits for where they are, and `bits`. A record codec's update has whole bits a block; see
// UpdateBytes for that.
inline double EntropyBytes(double blocks, double entries, const PayloadBits& bits) {
  const double others = kBlockElements - entries;
  const double sets =
      std::lgamma(kBlockElements + 1) - std::lgamma(entries + 1) - std::lgamma(others + 1);
  return blocks * (sets / std::log(2.0) + bits.entry * entries + bits.block) / 8;
}

// The most that it takes with up to so many entries. It is not where they are most: of a full block
// nothing need be said but the signs.
inline double MostBytes(double blocks, double entries, const PayloadBits& bits) {
  // One entry more takes bits.entry, and log2((4096 - entries) / entries) for where it is.
  const double dearest = kBlockElements / (1 + std::exp2(-bits.entry));
  return EntropyBytes(blocks, std::min(entries, dearest), bits);
}

// What a worker whose steps take `step_seconds` does in a round.
struct WorkerRound {
  int steps = 0;
  int weight = 1;      // of its update (DeltaWeight)
  double seconds = 0;  // of compute
};
// As docs/speeds.md, "What happens in a window"; window_seconds 0: no window.
WorkerRound RoundOfWorker(double step_seconds, double window_seconds, int local_steps);

// Share of time in which a pipeline of so many stages idles, with so many micro-batches a step.
inline double PipelineBubble(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace distro::tools
