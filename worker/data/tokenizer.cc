#include "worker/data/tokenizer.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/process/shell_command.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "worker/data/token_file.h"

namespace distro::worker {
namespace {

constexpr size_t kShownBytes = 40;

}  // namespace

absl::StatusOr<Tokenizer> Tokenizer::Create(std::string command, int vocab_size) {
  if (command.empty() && vocab_size != kByteVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tokenizer_command: is required, since the model has ", vocab_size, " tokens and bytes ",
        kByteVocabulary, "; for example 'scripts/distro-data tokenizer tokenizer.json'"));
  }
  return Tokenizer(std::move(command), vocab_size);
}

absl::StatusOr<std::string> Tokenizer::Run(absl::string_view direction,
                                           absl::string_view input) const {
  const std::string command = absl::StrCat(command_, " ", direction);
  absl::StatusOr<std::string> output = ShellCommand(command).Filter(input);
  if (output.ok()) return output;
  return absl::InvalidArgumentError(
      absl::StrCat("--tokenizer_command: ", command, ": ", output.status().message()));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text) const {
  std::vector<int32_t> tokens;
  if (command_.empty()) {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  } else {
    DISTRO_ASSIGN_OR_RETURN(const std::string numbers, Run("encode", text));
    absl::StatusOr<std::vector<int32_t>> parsed = ParseTokens(numbers, vocab_size_);
    if (!parsed.ok())
      return Annotate(parsed.status(), absl::StrCat("--tokenizer_command: ", command_, " encode"));
    tokens = *std::move(parsed);
  }
  if (tokens.empty())
    return absl::InvalidArgumentError("the prompt has no token: give a longer one");
  return tokens;
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const int32_t> tokens) const {
  std::string bytes;
  if (command_.empty()) {
    for (const int32_t token : tokens) bytes.push_back(static_cast<char>(token));
  } else {
    DISTRO_ASSIGN_OR_RETURN(bytes, Run("decode", absl::StrJoin(tokens, " ")));
  }
  return ReplaceInvalidUtf8(bytes);
}

absl::StatusOr<std::vector<int32_t>> ParseTokens(absl::string_view text, int vocab_size) {
  std::vector<int32_t> tokens;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
    int32_t token = 0;
    const bool digits = word.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(word, &token)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", ReplaceInvalidUtf8(word.substr(0, kShownBytes)), "' is not a token number"));
    }
    if (token >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is not below the model's vocab_size, ", vocab_size));
    }
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace distro::worker
