// Converts text to a model's tokens and back. With a vocabulary of 256, tokens are bytes. Other
// tokens are converted by a command of the user (docs/data.md, "A tokenizer as a command"), with
// one more argument:
//
//   COMMAND encode    UTF-8 text in, tokens out as numbers with white space between them
//   COMMAND decode    the other way
//
//   DISTRO_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
//                           Tokenizer::Create("distro-data tokenizer tokenizer.json", 50257));
//   DISTRO_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer.Encode("Once upon"));
//
// Thread-safe. Calls block; every call starts the command again.
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
  // `command` empty: tokens are bytes. InvalidArgument: it is empty, and the vocabulary is not 256;
  // names the missing flag.
  static absl::StatusOr<Tokenizer> Create(std::string command, int vocab_size);

  // InvalidArgument names the command: it failed (with its last line), its output is not tokens of
  // the vocabulary, or the text gives no token.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;

  // Returns UTF-8, with U+FFFD for invalid bytes. InvalidArgument: the command failed; names it.
  // Requires tokens of the vocabulary.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const;

 private:
  Tokenizer(std::string command, int vocab_size)
      : command_(std::move(command)), vocab_size_(vocab_size) {}
  absl::StatusOr<std::string> Run(absl::string_view direction, absl::string_view input) const;

  std::string command_;
  int vocab_size_;
};

// Parses numbers separated by white space. InvalidArgument names the first word that is not a token
// of the vocabulary.
absl::StatusOr<std::vector<int32_t>> ParseTokens(absl::string_view text, int vocab_size);

}  // namespace distro::worker
