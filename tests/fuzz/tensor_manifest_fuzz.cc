// The manifest of tensors: any bytes are InvalidArgument, or tensors that each have a beginning.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/model/tensor_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = distro::ParseTensorManifest({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) {
    if (parsed.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  const auto tensors = parsed->manifest.tensors();
  if (tensors.empty() || parsed->initial.size() != tensors.size()) std::abort();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > 0 && tensors[i - 1].name >= tensors[i].name) std::abort();
    if (!(parsed->initial[i].deviation >= 0)) std::abort();
  }
  return 0;
}
