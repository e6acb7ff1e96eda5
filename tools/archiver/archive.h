// Chooses the snapshot at which a replay begins: the folder's own when it is one of this run and
// the log still continues it, else the newest snapshot of the aggregator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/checkpoint/companions.h"
#include "distro/v1/admin.pb.h"
#include "kernels/replica/replica.h"
#include "tools/archiver/archive_folder.h"

namespace distro::tools {

// A replica and what it borrows.
struct Archive {
  std::unique_ptr<Layout> layout;
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<Replica> replica;
  ArchiveState state;          // of the folder
  v1::StoredArchive log;       // what is kept beside the copy
  Companions companions = {};  // of the run
};

// Writes a snapshot's file. Statuses as AggregatorClient::FetchSnapshot.
using SnapshotFetcher =
    std::function<absl::Status(const v1::SnapshotInfo& snapshot, const std::string& path)>;

// `held` is what the folder holds, if anything. A copy of its own that is damaged, or older than
// the log, is set aside with a line in the log. FailedPrecondition "other_run": it is of another
// run than `run`. DataLoss: the aggregator's snapshot is not what it announces.
absl::StatusOr<Archive> OpenArchive(const v1::GetRunResponse& run,
                                    absl::StatusOr<std::optional<ArchiveState>> held, int threads,
                                    ArchiveFolder* folder, const SnapshotFetcher& fetch, Log* log);

}  // namespace distro::tools
