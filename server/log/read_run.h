// Reads the run of a data folder and its snapshots without changing them, also while an aggregator
// uses the folder. Thread-safe, blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "distro/v1/snapshot.pb.h"
#include "server/log/run_identity.h"

namespace distro::server {

enum class SnapshotCheck {
  kSha256,  // reads the whole initial snapshot and the companions, and compares their SHA-256
  kHead,    // only the names and shapes of its tensors
};

// NotFound: there is no run. DataLoss: a file is damaged; the message names it and the remedy.
// FailedPrecondition: a file of a newer version.
absl::StatusOr<std::shared_ptr<const RunIdentity>> ReadRun(const std::string& data_dir,
                                                           SnapshotCheck check);

// The snapshots besides the initial one, ascending by round; none without the file. Does not read
// the snapshots themselves. Statuses as ReadRun.
absl::StatusOr<std::vector<v1::SnapshotInfo>> ReadSnapshotList(const std::string& data_dir);

// Reads the whole file. DataLoss: its SHA-256 is not that of `info`, or it is missing.
absl::Status CheckStoredSnapshot(const std::string& path, const v1::SnapshotInfo& info);

// The path of the snapshot before `round`; 0 is the initial one.
std::string SnapshotPath(const std::string& data_dir, uint64_t round);
// The folder of the companions, the files that are copied into every checkpoint.
std::string CompanionsDir(const std::string& data_dir);
std::string SnapshotListPath(const std::string& data_dir);
std::string RunFilePath(const std::string& data_dir);

}  // namespace distro::server
