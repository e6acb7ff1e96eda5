// The description of a module: any bytes are its tensors, in order, or InvalidArgument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/model/checkpoint/module_description.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest = distro::TrainedTensors({reinterpret_cast<const char*>(data), size});
  if (!manifest.ok()) {
    if (!absl::IsInvalidArgument(manifest.status())) std::abort();
    return 0;
  }
  const auto tensors = manifest->tensors();
  if (tensors.empty()) std::abort();
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i - 1].name >= tensors[i].name) std::abort();
  return 0;
}
