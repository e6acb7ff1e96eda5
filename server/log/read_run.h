// The run of a data folder, read and not changed: also while an aggregator holds the folder. Thread-safe, blocking.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/log/run_identity.h"

namespace distro::server {

enum class SnapshotCheck {
  kSha256,  // reads the whole initial snapshot and compares its SHA-256
  kHead,    // only the names and shapes of its tensors
};

// NotFound: there is no run. DataLoss: a file is damaged; the message names it and says what to do. FailedPrecondition: a file of
// a newer version.
absl::StatusOr<std::shared_ptr<const RunIdentity>> ReadRun(const std::string& data_dir,
                                                           SnapshotCheck check);

std::string InitialSnapshotPath(const std::string& data_dir);
std::string RunFilePath(const std::string& data_dir);

}  // namespace distro::server
