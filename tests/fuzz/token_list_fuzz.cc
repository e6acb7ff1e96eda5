// The output of a tokenizer's command: any bytes are InvalidArgument, or tokens of the vocabulary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "worker/data/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kVocabulary = 1000;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokens = distro::worker::ParseTokens(text, kVocabulary);
  if (!tokens.ok()) {
    if (tokens.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  for (const int32_t token : *tokens)
    if (token < 0 || token >= kVocabulary) std::abort();
  return 0;
}
