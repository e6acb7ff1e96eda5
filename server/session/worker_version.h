// Checks the version of a worker: an aggregator accepts its own major.minor, and the minor before.
// Pure.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro::server {

// `theirs` and `ours` are "major.minor.patch". FailedPrecondition, reason `version`: another major,
// a newer minor, or one that is more than one behind; names both. InvalidArgument: `theirs` is no
// version. Requires `ours` to be one.
absl::Status CheckWorkerVersion(absl::string_view theirs, absl::string_view ours);

}  // namespace distro::server
