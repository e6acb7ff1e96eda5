// The commands of distro-worker besides training. Each is a function that makes a text, and a
// command around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"

namespace distro::worker {

// --data_format, of whatever reads tokens.
Flag DataFormatFlag(std::string* value);

// --tokenizer_command, of whatever continues text.
Flag TokenizerCommandFlag(std::string* value);

struct GenerateCommandOptions {
  std::string model;   // checkpoint folder, Hugging Face layout. Required.
  std::string prompt;  // UTF-8 text to continue. Required.
  // Command that turns text into the model's tokens and back; empty: they are bytes.
  std::string tokenizer_command;
  int tokens = 200;          // to add
  double temperature = 0.8;  // 0: always the likeliest token; larger values draw more boldly
  uint64_t seed = 0;         // of the draws
  int threads = 1;           // of Torch
};

// The prompt and its continuation; what is not UTF-8 comes as U+FFFD. InvalidArgument: an option, a
// checkpoint that is none of a Llama, or the statuses of Tokenizer.
absl::StatusOr<std::string> GenerateText(const GenerateCommandOptions& options);

struct FingerprintOptions {
  std::string data;                  // as --data. Required.
  std::string data_format = "auto";  // as --data_format
};

// "FINGERPRINT  N tokens  FILE" (docs/data.md): what Join compares, so that a copy of the data can
// be checked before a worker starts. Reads all of it. InvalidArgument names the flag and what
// is wrong.
absl::StatusOr<std::string> DataFingerprint(const FingerprintOptions& options);

struct TextFloorOptions {
  std::string data;  // UTF-8 text. Required.
  // As the run has them: they say which part of the text is held out.
  int sequence_length = 128;
  double held_out_fraction = 0.05;
};

// The losses that a trained byte model has to get below. Two lines: the held-out text's nats a byte
// under the byte frequencies, and under a byte-bigram model, of the training text. InvalidArgument:
// not text, or too little of it.
absl::StatusOr<std::string> TextFloorReport(const TextFloorOptions& options);

// generate, fingerprint, bench-link and text-floor. They write to standard output.
std::vector<Command> Commands();

}  // namespace distro::worker
