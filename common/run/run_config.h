// run.json: the JSON form of distro.v1.RunConfig (docs/run_configuration.md). Pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/run.pb.h"

namespace distro {

// Limit of the name of a run's data.
inline constexpr size_t kMaxFingerprintBytes = 128;

// The data_fingerprint of a run that does not compare the workers' data.
inline constexpr absl::string_view kAnyData = "any";

// Parses the file and sets only its keys. InvalidArgument names the key, the value, the range and
// the remedy: an unknown key, a value out of range, or a contradiction between two keys.
absl::StatusOr<v1::RunConfig> ReadRunConfig(absl::string_view json);

// The same, with all defaults filled in.
absl::StatusOr<v1::RunConfig> ParseRunConfig(absl::string_view json);

// The same for a message from a peer. Idempotent: a complete configuration stays as it is.
absl::StatusOr<v1::RunConfig> CompleteRunConfig(v1::RunConfig config);

// For who reads a run that another version may have created. FailedPrecondition (reason "version")
// names the first key whose value this version does not know.
absl::Status CheckValuesAreKnown(const v1::RunConfig& config);

// The same, and refuses keys that this version does not know: for who trains by them, or keeps the
// run.
absl::Status CheckKeysAreKnown(const v1::RunConfig& config);

// Pretty-printed run.json that ParseRunConfig reads back to the same message.
std::string RunConfigToJson(const v1::RunConfig& config);

}  // namespace distro
