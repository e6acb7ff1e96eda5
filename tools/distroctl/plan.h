// `distroctl plan`: calculates what a run of a model with a number of workers needs, with either
// method, before anything is bought or started. docs/tools.md, "plan", has the formulas. Links are
// in bits per second, units are decimal. Memory is planned with the workers' own code:
// worker/plan/memory_plan.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "common/method/deltas/dense_result.h"
#include "common/model/layout/matrix.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct PlanOptions {
  std::string model;            // a folder with config.json, or that file. Required.
  int workers = 32;             // W
  int gpus = 1;                 // R, per node
  double gpu_memory_gb = 80;    // of each; with deltas of a worker
  double up_mbps = 10;          // of a node
  double down_mbps = 100;       // of a node
  double compute_seconds = 10;  // of one step's gradient on a node
  // Seconds per step of workers of different speeds; the longest replaces compute_seconds. Empty:
  // all are alike.
  std::vector<double> step_seconds = {};
  double window_seconds = 0;           // round_window of deltas; 0: all take H steps
  uint64_t rounds = 25000;             // of the run
  std::string method = "deltas";       // or "signs"
  int local_steps = 0;                 // H of deltas; 0: the method's default
  int kept = 0;                        // K; 0: the method's default
  int kept_votes = 0;                  // K' of download = top; 0: lossless
  std::optional<bool> overlap = {};    // signs only; empty: the method's default
  int micro_batch = 1;                 // samples
  int sequence_length = 2048;          // tokens
  std::string param_dtype = "bf16";    // of the worker: f32 or bf16; the default is that of GPUs
  int activation_checkpointing = 0;    // of the worker: every n-th unit; 0: none
  int micro_batches_of_pipeline = 32;  // of the pipeline that is compared

  // InvalidArgument names the flag.
  absl::Status Validate() const;
};

// The verdict is Aborted if no strategy fits the memory.
absl::StatusOr<Report> MakePlan(const PlanOptions& given);

Command PlanCommand(const Console* console);

// Bytes of the 16-bit gradients of all parameters, as moved by data parallelism.
inline double GradientBytes(double parameters) { return 2 * parameters; }

inline double TransferSeconds(double bytes, double bits_per_second) {
  return 8 * bytes / bits_per_second;
}

// Bytes that each of n peers receives per step if all send `bytes` to all: the report's All-Reduce
// (74.4 GB), and its DisTrO without an aggregator (86.8 MB).
inline double ReceivedFromAll(double bytes, int n) { return bytes * (n - 1); }
// Bytes that each of n peers sends, and receives, in a ring All-Reduce of `bytes`; the same for
// ZeRO-1 and -2 (Rajbhandari et al., 2020, section 7).
inline double RingAllReduceBytes(double bytes, int n) { return 2 * bytes * (n - 1) / n; }
// ZeRO-3: parameters are gathered twice, gradients scattered once.
inline double Zero3Bytes(double bytes, int n) { return 3 * bytes * (n - 1) / n; }

// Bits of a payload besides the positions of its entries.
struct PayloadBits {
  double entry = 0;
  double block = 0;
};
inline constexpr PayloadBits kSignsBits = {.entry = 1, .block = 0};
// A block's scale is near that of the block before (docs/decisions/0019).
inline constexpr PayloadBits kDeltaUpdateBits = {.entry = 1, .block = 3};
// Because 95 to 98 % of the entries are of level 0 (docs/payload_format.md, "How near the
// entropy").
inline constexpr PayloadBits kDeltaResultBits = {.entry = 1.3, .block = 3};

// Bytes of a payload with `entries` of the 4096 positions in each of `blocks` blocks: log2 C(4096,
// entries) bits for the positions, plus `bits`. The update of a record codec has whole bits per
// block; see UpdateBytes.
inline double EntropyBytes(double blocks, double entries, const PayloadBits& bits) {
  const double others = kBlockElements - entries;
  const double sets =
      std::lgamma(kBlockElements + 1) - std::lgamma(entries + 1) - std::lgamma(others + 1);
  return blocks * (sets / std::log(2.0) + bits.entry * entries + bits.block) / 8;
}

// The largest EntropyBytes for up to this many entries. A full block is not the largest: it needs
// no bits for positions.
inline double MostBytes(double blocks, double entries, const PayloadBits& bits) {
  // One more entry costs bits.entry, plus log2((4096 - entries) / entries) for its position.
  const double dearest = kBlockElements / (1 + std::exp2(-bits.entry));
  return EntropyBytes(blocks, std::min(entries, dearest), bits);
}

// Bits a position, at most, of a result of W workers that send every position: the entropy of the
// sum of as many random signs (de Moivre), and what scales that differ add (docs/payload_format.md,
// "Dense deltas").
inline double DenseResultBits(int workers) {
  if (workers == 1) return 1;
  constexpr double kScales = 0.7;
  const double sum = std::log2(std::numbers::pi * std::numbers::e * workers / 2) / 2;
  return std::min(sum + kScales, std::log2(kDenseSymbols));
}

// The part of a round done by a worker whose steps take `step_seconds`.
struct WorkerRound {
  int steps = 0;
  int weight = 1;      // of its update (DeltaWeight)
  double seconds = 0;  // of compute
};
// As docs/speeds.md, "What happens in a window"; window_seconds 0: no window.
WorkerRound RoundOfWorker(double step_seconds, double window_seconds, int local_steps);

// Share of idle time in a pipeline with this many stages and micro-batches per step (Huang et al.,
// 2019). Each boundary carries 2 bytes x tokens x hidden each way.
inline double PipelineBubble(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace distro::tools
