// `distroctl plan`: what a run of a model on so many nodes will take, before anything is bought or
// started; and the formulas behind it, which docs/tools.md, "plan", has in words with their
// sources. Bits a second for links, decimal units. Memory is what workers plan with:
// worker/plan/memory_plan.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct PlanOptions {
  std::string config;                  // config.json of the model. Required.
  int nodes = 32;                      // W
  int gpus = 1;                        // R, of a node
  double gpu_memory_gb = 80;           // of each
  double up_mbps = 10;                 // of a node
  double down_mbps = 100;              // of a node
  double compute_seconds = 10;         // a round's gradient takes on a node
  uint64_t rounds = 25000;             // of the run
  int kept = 4;                        // K
  int kept_votes = 0;                  // K' of download = top; 0: lossless
  bool overlap = true;                 // overlap 1
  int micro_batch = 1;                 // samples
  int sequence_length = 2048;          // tokens
  std::string param_dtype = "f32";     // of the worker: f32 or bf16
  int activation_checkpointing = 0;    // of the worker: every how many units; 0: none
  int micro_batches_of_pipeline = 32;  // for the comparison with a pipeline over the same links

  // InvalidArgument names the flag.
  absl::Status Validate() const;
};

// The verdict is Aborted when no strategy fits the memory.
absl::StatusOr<Report> MakePlan(const PlanOptions& options);

Command PlanCommand(const Console* console);

// Bytes of 16-bit gradients of all parameters: what data parallelism moves.
double GradientBytes(double parameters);

inline double TransferSeconds(double bytes, double bits_per_second) {
  return 8 * bytes / bits_per_second;
}

// What each of n peers receives a step when all send `bytes` to all: the report's All-Reduce, and
// its DisTrO without an aggregator.
double ReceivedFromAll(double bytes, int n);
// What each of n sends, and receives, in a ring All-Reduce of `bytes`; ZeRO-1 and -2 move the same.
double RingAllReduceBytes(double bytes, int n);
// ZeRO-3: parameters are gathered twice, gradients scattered once.
double Zero3Bytes(double bytes, int n);

// Bytes of a payload with `votes` of the 4096 coefficients in each of `blocks` blocks: log2 C(4096,
// votes) bits for where they are and one for each sign. A record codec's update has whole bits a
// block; see UpdateBytes for that.
double EntropyBytes(double blocks, int votes);
// A result that n workers made, each with k a block: lossless, with no two workers of one mind (the
// most there can be).
double LosslessResultBytes(double blocks, int n, int k);

// Share of time in which a pipeline of so many stages idles, with so many micro-batches a step.
double PipelineBubble(int stages, int micro_batches);

}  // namespace distro::tools
