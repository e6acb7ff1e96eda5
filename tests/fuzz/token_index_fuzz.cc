// The index of distro-data: any bytes are InvalidArgument, or an index whose shards add up and lie
// in its folder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "worker/data/token_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = distro::worker::ParseTokenIndex(text);
  if (!index.ok()) {
    if (index.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  int64_t tokens = 0;
  for (const distro::worker::TokenShard& shard : index->shards) {
    if (shard.tokens < 1 || shard.name.find('/') != std::string::npos) std::abort();
    tokens += shard.tokens;
  }
  if (index->shards.empty() || tokens != index->tokens) std::abort();
  return 0;
}
