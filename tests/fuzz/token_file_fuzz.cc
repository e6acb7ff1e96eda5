// The first byte chooses the format; the rest is tokens that can all be read, or InvalidArgument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "worker/data/token_file.h"

namespace {

using distro::worker::TokenFormat;
using distro::worker::TokenSource;

constexpr TokenFormat kFormats[] = {TokenFormat::kText, TokenFormat::kLlmc, TokenFormat::kUint16,
                                    TokenFormat::kUint32};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const absl::StatusOr<TokenSource> source = TokenSource::FromBytes(bytes, kFormats[data[0] % 4]);
  if (!source.ok()) {
    if (source.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  std::vector<int32_t> tokens(source->tokens());
  if (!source->Read(0, absl::MakeSpan(tokens)).ok() || !source->Fingerprint().ok() ||
      !source->ValidateVocabulary(int64_t{1} << 32).ok())
    std::abort();
  return 0;
}
