// Any bytes are a file whose tensors lie inside it, or InvalidArgument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/model/checkpoint/safetensors.h"
#include "common/model/checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto contents = distro::ParseSafetensors(bytes);
  if (!contents.ok() && contents.status().code() != absl::StatusCode::kInvalidArgument)
    std::abort();
  size_t covered = 0;
  for (size_t i = 0; contents.ok() && i < contents->tensors.size(); ++i) {
    const distro::SafetensorsTensor& tensor = contents->tensors[i];
    covered += tensor.bytes.size();
    if (!distro::IsConvertibleToFloat(tensor.dtype)) continue;
    std::vector<float> values(tensor.elements());
    if (!distro::CopyToFloat(tensor, absl::MakeSpan(values)).ok()) std::abort();
  }
  if (covered > size) std::abort();
  const auto index = distro::ParseShardIndex(bytes);
  if (!index.ok() && index.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
  return 0;
}
