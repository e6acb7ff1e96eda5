// Chooses the snapshot at which a replay begins: the folder's own, if it belongs to this run and
// the aggregator's log still continues it; otherwise the newest snapshot of the aggregator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/model/checkpoint/companions.h"
#include "distro/v1/admin.pb.h"
#include "kernels/replica/replica.h"
#include "tools/archiver/archive_folder.h"

namespace distro::tools {

// A replica, and the objects that it borrows.
struct Archive {
  std::unique_ptr<Layout> layout;
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<Replica> replica;
  ArchiveState state;          // from the folder
  v1::StoredArchive log;       // stored beside the copy
  Companions companions = {};  // of the run
};

// Downloads a snapshot to `path`. Statuses as FetchSnapshot.
using SnapshotFetcher =
    std::function<absl::Status(const v1::SnapshotInfo& snapshot, const std::string& path)>;

// `held` is the folder's content, if any. A copy that is damaged, or older than the aggregator's
// log, is set aside, and the process's log says so. FailedPrecondition "other_run": it is of
// another run than `run`. DataLoss: the aggregator's snapshot is not the announced one.
absl::StatusOr<Archive> OpenArchive(const v1::GetRunResponse& run,
                                    absl::StatusOr<std::optional<ArchiveState>> held, int threads,
                                    ArchiveFolder* folder, const SnapshotFetcher& fetch, Log* log);

}  // namespace distro::tools
