// The epoch of a data folder: a number that increases at every start, also in an older copy of the
// folder (docs/decisions/0005-epoch-follows-the-calendar.md).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/epoch.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "server/log/disk.h"

namespace distro::server {

// Raises the file `epoch` of `data_dir` to max(epoch of the file, epoch of the newest record, Unix
// seconds * 2^20) + 1 + r, durably; r is the low 20 bits of `random`, which the caller draws at
// each start. `has_run`: the folder has a run, so the file must exist. DataLoss: it is missing or
// not a number. Reason "disk": not raised; the process must not serve.
absl::StatusOr<EpochId> RaiseEpoch(const std::string& data_dir, bool has_run, uint64_t random,
                                   const Clock& clock, Disk* disk, Log* log);

// OK if a start of this folder, which has a run, could read its epoch. Changes nothing. Otherwise
// as RaiseEpoch.
absl::Status CheckEpochFile(const std::string& data_dir);

}  // namespace distro::server
