// Fetches a snapshot, or a companion of the run, into a file. An interrupted download goes on where
// it was, also in a later process.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/client/connection.h"
#include "common/client/follow/follower.h"
#include "distro/v1/snapshot.pb.h"

namespace distro {

// Writes `path`.part, checks its size and SHA-256, renames it to `path`. Retries while the
// aggregator is away. Blocks. InvalidArgument: the bytes are not those of the SHA-256; nothing is
// kept. FailedPrecondition with reason `pruned`: the aggregator has this snapshot no more.
// Otherwise its refusal, the status that ended the client, or that of the disk.
absl::Status FetchSnapshot(const Follower& follower, Connection* connection,
                           const v1::SnapshotInfo& snapshot, const std::string& path);

// The same of a companion.
absl::Status FetchCompanion(const Follower& follower, Connection* connection,
                            const v1::CompanionFile& file, const std::string& path);

}  // namespace distro
