// The target of a request: any bytes are a path and a query that are no longer than they are, or
// InvalidArgument.
#include <cstdint>
#include <cstdlib>

#include "common/net/http/http_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view target(reinterpret_cast<const char*>(data), size);
  const auto request = distro::ParseHttpTarget(target);
  if (!request.ok()) {
    if (request.status().code() != absl::StatusCode::kInvalidArgument) abort();
    return 0;
  }
  size_t bytes = request->path.size();
  for (const auto& [name, value] : request->query) bytes += name.size() + value.size();
  if (request->path.empty() || bytes > size) abort();
  return 0;
}
