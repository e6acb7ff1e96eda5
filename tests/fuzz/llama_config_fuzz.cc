// Any bytes are a configuration that is written and read back unchanged, or InvalidArgument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/model_config/llama_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = distro::ParseLlamaConfig({reinterpret_cast<const char*>(data), size});
  if (!config.ok()) {
    if (config.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  const auto again = distro::ParseLlamaConfig(distro::WriteLlamaConfig(*config));
  if (!again.ok() || !(*again == *config)) std::abort();
  if (distro::ParameterCount(*config) <= 0 || distro::FlopsPerToken(*config, 1) <= 0) std::abort();
  return 0;
}
