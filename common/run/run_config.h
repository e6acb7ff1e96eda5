// run.json: the JSON form of distro.v1.RunConfig (docs/run_configuration.md). Pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Of the name of a run's data, whoever made it.
inline constexpr size_t kMaxFingerprintBytes = 128;

// The data_fingerprint of a run in which nobody's data is compared.
inline constexpr absl::string_view kAnyData = "any";

// The keys that the file has. InvalidArgument names the key, the value, the range and the remedy:
// an unknown key, a value out of range, or a contradiction between two keys.
absl::StatusOr<v1::RunConfig> ReadRunConfig(absl::string_view json);

// The same with every default filled in.
absl::StatusOr<v1::RunConfig> ParseRunConfig(absl::string_view json);

// The same for a message that came from a peer. Idempotent: a complete configuration stays as it
// is.
absl::StatusOr<v1::RunConfig> CompleteRunConfig(v1::RunConfig config);

// Pretty-printed run.json that ParseRunConfig reads back to the same message.
std::string RunConfigToJson(const v1::RunConfig& config);

}  // namespace distro
