// What an archiver keeps beside its copy of the parameters, so that the run can be restored when
// the aggregator's disk is gone (`distroctl run restore`): what the run is, and the headers of the
// last rounds that are in the copy. One file a copy, docs/files.md, "Files of the archiver".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/round_log/committed_round.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/store.pb.h"

namespace distro::tools {

// Headers that are kept: what an aggregator looks at when it starts.
inline constexpr int kArchivedHeaders = 64;

// Without headers. `run` is an answer of GetRun with a run.
v1::StoredArchive ArchiveOf(const v1::GetRunResponse& run);

// `round` is applied: its header comes behind the others, the oldest may go. One that does not
// follow them begins anew.
void AddHeader(const CommittedRound& round, v1::StoredArchive* archive);

std::string EncodeArchiveLog(const v1::StoredArchive& archive);

// DataLoss: not what EncodeArchiveLog makes. FailedPrecondition: of a newer version.
absl::StatusOr<v1::StoredArchive> ParseArchiveLog(absl::string_view bytes);

}  // namespace distro::tools
