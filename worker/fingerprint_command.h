// `distro-worker fingerprint`: what Join compares, so that a copy of the data can be checked before a worker starts.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace distro::worker {

struct FingerprintOptions {
  std::string data;         // token file. Required.
  std::string data_format;  // as --data_format
};

// "FINGERPRINT  N tokens  FILE" (docs/data.md). Reads the whole file. InvalidArgument names the flag and what is wrong.
absl::StatusOr<std::string> DataFingerprint(const FingerprintOptions& options);

}  // namespace distro::worker
