// The commands of distro-worker except training. Each has a function that returns its text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"

namespace distro::worker {

// --data_format, for commands that read tokens.
Flag DataFormatFlag(std::string* value);

// --tokenizer_command, for commands that continue text.
Flag TokenizerCommandFlag(std::string* value);

struct GenerateCommandOptions {
  std::string model;   // checkpoint folder, Hugging Face layout. Required.
  std::string prompt;  // UTF-8 text to continue. Required.
  // Command that converts text to the model's tokens and back; empty: tokens are bytes.
  std::string tokenizer_command;
  int tokens = 200;          // to add
  double temperature = 0.8;  // 0: always the likeliest token; larger values: more random
  uint64_t seed = 0;         // of the draws
  int threads = 1;           // of Torch
};

// The prompt and its continuation, with U+FFFD for invalid UTF-8. InvalidArgument: an option, or a
// checkpoint of another architecture. Also the statuses of Tokenizer.
absl::StatusOr<std::string> GenerateText(const GenerateCommandOptions& options);

struct FingerprintOptions {
  std::string data;                  // as --data. Required.
  std::string data_format = "auto";  // as --data_format
};

// "FINGERPRINT  N tokens  FILE" (docs/data.md). Join compares the fingerprint, so this checks a
// copy of the data before a worker starts. Reads all tokens. InvalidArgument names the flag and the
// fault.
absl::StatusOr<std::string> DataFingerprint(const FingerprintOptions& options);

struct TextFloorOptions {
  std::string data;  // UTF-8 text. Required.
  // As in the run's configuration: they determine the held-out part of the text.
  int sequence_length = 128;
  double held_out_fraction = 0.05;
};

// The losses below which a trained byte model must get, in two lines: nats per byte of the held-out
// text under byte frequencies and under byte bigrams of the training text. InvalidArgument: not
// text, or too little of it.
absl::StatusOr<std::string> TextFloorReport(const TextFloorOptions& options);

// generate, fingerprint, bench-link and text-floor. They write to standard output.
std::vector<Command> Commands();

}  // namespace distro::worker
