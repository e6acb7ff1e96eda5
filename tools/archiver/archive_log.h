// The file that an archiver stores beside its copy of the parameters, so that the run can be
// restored if the aggregator's disk is lost (`distroctl run restore`): a description of the run,
// and the headers of the last rounds in the copy. One file per copy; docs/files.md, "Files of the
// archiver".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/store.pb.h"

namespace distro::tools {

// Number of headers: as many as an aggregator reads at its start.
inline constexpr int kArchivedHeaders = 64;

// Without headers. `run` is a GetRun response with a run.
v1::StoredArchive ArchiveOf(const v1::GetRunResponse& run);

// Appends the header of `round`, which has been applied, and drops the oldest above
// kArchivedHeaders. A header that does not follow the last one replaces all.
void AddHeader(const CommittedRound& round, v1::StoredArchive* archive);

std::string EncodeArchiveLog(const v1::StoredArchive& archive);

// DataLoss: not written by EncodeArchiveLog. FailedPrecondition: by a newer version.
absl::StatusOr<v1::StoredArchive> ParseArchiveLog(absl::string_view bytes);

}  // namespace distro::tools
