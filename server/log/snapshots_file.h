// snapshots.pb: the snapshots besides the initial one, as one file with a checksum (docs/files.md). Pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/store.pb.h"

namespace distro::server {

std::string EncodeSnapshotsFile(const v1::StoredSnapshots& snapshots);

// DataLoss: damaged, more than two, not ascending by round from 1 on, or a SHA-256 without 32 bytes. FailedPrecondition: of a
// newer version.
absl::StatusOr<v1::StoredSnapshots> ParseSnapshotsFile(absl::string_view bytes);

}  // namespace distro::server
