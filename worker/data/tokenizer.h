// Turns text into a model's tokens and back. With 256 tokens they are bytes; others come from a
// command of the user (docs/data.md, "A tokenizer as a command"), to which one word is added:
//
//   COMMAND encode    UTF-8 text in, tokens out as numbers with white space between them
//   COMMAND decode    the other way
//
//   DISTRO_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
//                           Tokenizer::Create("distro-data tokenizer tokenizer.json", 50257));
//   DISTRO_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer.Encode("Once upon"));
//
// Thread-safe. Calls block; every call starts the command anew.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace distro::worker {

class Tokenizer {
 public:
  // `command` empty: bytes. InvalidArgument: then the vocabulary is not theirs; names the flag that
  // is missing.
  static absl::StatusOr<Tokenizer> Create(std::string command, int vocab_size);

  // InvalidArgument names the command: it failed, with its last line, or what it wrote is not
  // tokens of the vocabulary; or the text makes no token.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;

  // UTF-8: what is none comes as U+FFFD. InvalidArgument names the command, which failed. Requires
  // tokens of the vocabulary.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const;

 private:
  Tokenizer(std::string command, int vocab_size)
      : command_(std::move(command)), vocab_size_(vocab_size) {}
  absl::StatusOr<std::string> Run(absl::string_view direction, absl::string_view input) const;

  std::string command_;
  int vocab_size_;
};

// Numbers with white space between them. InvalidArgument names the first word that is no token of
// the vocabulary.
absl::StatusOr<std::vector<int32_t>> ParseTokens(absl::string_view text, int vocab_size);

}  // namespace distro::worker
