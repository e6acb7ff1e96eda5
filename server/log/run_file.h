// run.pb: what is fixed when a run is created, as one file with a checksum (docs/files.md). Pure
// functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/store.pb.h"

namespace distro::server {

std::string EncodeRunFile(const v1::StoredRun& run);

// DataLoss: damaged, or its configuration is not one that this version accepts. FailedPrecondition: of a newer version.
absl::StatusOr<v1::StoredRun> ParseRunFile(absl::string_view bytes);

}  // namespace distro::server
