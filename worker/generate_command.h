// `distro-worker generate`: continues a text with a checkpoint of a byte-tokenizer model.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace distro::worker {

struct GenerateCommandOptions {
  // Checkpoint folder, Hugging Face layout.
  std::string model;
  // UTF-8 text to continue, not empty.
  std::string prompt;
  // Tokens to add.
  int tokens = 200;
  // 0: always the likeliest token; larger values draw more boldly.
  double temperature = 0.8;
  // Of the draws.
  uint64_t seed = 0;
  // Torch threads.
  int threads = 1;
};

// The prompt and its continuation; bytes that are not UTF-8 come as U+FFFD. InvalidArgument: the
// checkpoint is not a model of 256 tokens, or the prompt is empty.
absl::StatusOr<std::string> GenerateText(const GenerateCommandOptions& options);

}  // namespace distro::worker
