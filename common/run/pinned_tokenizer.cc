#include "common/run/pinned_tokenizer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro {

bool IsSha256Text(absl::string_view text) {
  const auto is_hex = [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::ranges::all_of(text, is_hex);
}

std::string Sha256TextOf(absl::string_view text) {
  std::string lower = absl::AsciiStrToLower(text);
  return IsSha256Text(lower) ? lower : std::string(text);
}

absl::Status CheckTokenizer(const v1::RunConfig& config, absl::string_view tokenizer) {
  if (!tokenizer.empty() && tokenizer != kByteTokenizer && !IsSha256Text(tokenizer)) {
    return absl::InvalidArgumentError(
        "tokenizer: is neither \"bytes\" nor 64 digits of lower-case hexadecimal");
  }
  if (!config.has_tokenizer_sha256() || tokenizer.empty() ||
      tokenizer == config.tokenizer_sha256()) {
    return absl::OkStatus();
  }
  const bool bytes = tokenizer == kByteTokenizer;
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "other_data",
      absl::StrCat(
          "tokenizer: this worker's tokens are ", bytes ? "" : "of the tokenizer ", tokenizer,
          ", the run's are of ", config.tokenizer_sha256(),
          ": encode the text with the run's tokenizer (distro-data --tokenizer), which lies "
          "in the run's initial folder and in every checkpoint where it was given one"));
}

}  // namespace distro
