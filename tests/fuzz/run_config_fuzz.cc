// run.json: OK or InvalidArgument, and what is accepted is read back from its own text.
#include <cstdint>
#include <cstdlib>

#include "common/run/run_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config =
      distro::ParseRunConfig(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!config.ok()) {
    if (config.status().code() != absl::StatusCode::kInvalidArgument) std::abort();
    return 0;
  }
  const auto again = distro::ParseRunConfig(distro::RunConfigToJson(*config));
  if (!again.ok() || again->SerializeAsString() != config->SerializeAsString()) std::abort();
  return 0;
}
