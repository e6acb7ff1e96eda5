// The JSON header of a safetensors file, read event by event: nothing is built that the format does
// not have, so a hostile header costs no more memory than a few times its own size. Part of
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

// "reason: what", InvalidArgument.
absl::Status SafetensorsError(absl::string_view reason, absl::string_view what);

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // of the data, in bytes; begin <= end
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the header's order, names unique
  std::map<std::string, std::string> metadata;
};

// Checks the structure: types, unique keys and names, names of 1 to 512 bytes, known dtypes,
// dimensions of at most 2^63 - 1 and no more than 64 of them, end - begin equal to the size that
// shape and dtype say. Where the tensors lie is for the caller to check.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view text);

}  // namespace distro
