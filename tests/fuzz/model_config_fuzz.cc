// Any bytes are a configuration that is written and read back unchanged, or InvalidArgument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/model/architecture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = distro::ParseModelConfig({reinterpret_cast<const char*>(data), size});
  if (!model.ok()) {
    if (model.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  const std::string text = (*model)->ConfigJson();
  const auto again = distro::ParseModelConfig(text);
  if (!again.ok() || (*again)->ConfigJson() != text) std::abort();
  if ((*model)->FlopsPerToken(1) <= 0) std::abort();
  return 0;
}
