// The samples that a worker's model writes during training (sample_writer.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace distro::worker {

struct SampleOptions {
  std::string prompt;  // UTF-8; empty: no samples
  // Command that converts text to the model's tokens and back; empty: tokens are bytes.
  std::string tokenizer_command;
  // Rounds between samples; 0: one at the end of the run. Training waits for each.
  uint64_t interval_rounds = 100;
  // Tokens that are added to the prompt. Each takes a forward pass of one sequence.
  int tokens = 64;

  // InvalidArgument names the flag.
  absl::Status Validate() const;
};

}  // namespace distro::worker
