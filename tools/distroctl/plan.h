// `distroctl plan`: what a run of a model on so many nodes will take, before anything is bought or
// started.
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

}  // namespace distro::tools
