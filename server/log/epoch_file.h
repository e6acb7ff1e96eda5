// The epoch of a data folder: a number that every start makes higher than any before it, also in an older copy of the folder
// (docs/decisions/0005-epoch-follows-the-calendar.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "server/log/disk.h"

namespace distro::server {

// Raises the file `epoch` of `data_dir` to max(epoch of the file + 1, epoch of the newest record + 1, Unix seconds), durably.
// `has_run`: a folder with a run has the file. DataLoss: it is missing or not a number. Reason "disk": not raised; the process
// must not serve.
absl::StatusOr<EpochId> RaiseEpoch(const std::string& data_dir, bool has_run, const Clock& clock,
                                   Disk* disk, Log* log);

}  // namespace distro::server
