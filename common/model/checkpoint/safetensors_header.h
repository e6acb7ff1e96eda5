// Parses the JSON header of a safetensors file event by event. It stores only what the format
// allows, so a hostile header costs at most a few times its own size in memory. Part of
// safetensors; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

// InvalidArgument with the message "reason: what".
absl::Status SafetensorsError(absl::string_view reason, absl::string_view what);

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // offset into the data, in bytes; begin <= end
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the header's order, names unique
  std::map<std::string, std::string> metadata;
};

// Checks types, unique keys and names, names of 1 to 512 bytes, known dtypes, at most 64 dimensions
// of at most 2^63 - 1, and that end - begin is the size given by shape and dtype. The caller checks
// where the tensors lie.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view text);

}  // namespace distro
