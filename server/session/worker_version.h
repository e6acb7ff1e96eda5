// Checks the version of a worker: an aggregator accepts its own major.minor, and the minor before.
// Pure.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro::server {

// `theirs` and `ours` are "major.minor.patch". FailedPrecondition with reason `version`: another
// major, a newer minor, or more than one minor behind; names both. InvalidArgument: `theirs` is not
// a version. Requires a valid `ours`.
absl::Status CheckWorkerVersion(absl::string_view theirs, absl::string_view ours);

}  // namespace distro::server
