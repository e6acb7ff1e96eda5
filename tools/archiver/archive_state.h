// The archiver's state file: the run and the snapshot in its folder (docs/files.md, "Files of the
// archiver"). Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "distro/v1/snapshot.pb.h"

namespace distro::tools {

struct ArchiveState {
  std::string run_id;
  uint64_t epoch = 0;            // the highest seen
  v1::SnapshotInfo snapshot;     // the file beside it; the subscription continues from its log_hash
  uint64_t published_round = 0;  // of the last interval that ended; 0: none
  uint64_t result_bytes = 0;     // of the rounds since then
};

// Requires a run id accepted by IsRunId and a snapshot with 32 bytes of SHA-256.
std::string EncodeArchiveState(const ArchiveState& state);

// DataLoss: not written by EncodeArchiveState. FailedPrecondition: by a newer version.
absl::StatusOr<ArchiveState> ParseArchiveState(absl::string_view text);

}  // namespace distro::tools
