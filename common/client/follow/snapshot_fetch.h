// Downloads a snapshot or a companion of the run into a file. An interrupted download resumes where
// it stopped, even in a later process.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/client/connection.h"
#include "common/client/follow/follower.h"
#include "common/client/follow/mirrors.h"
#include "distro/v1/snapshot.pb.h"

namespace distro {

// Writes `path`.part, checks its size and SHA-256, and renames it to `path`. Asks the mirrors first
// (null: there are none); where they fail, or give wrong bytes, asks the aggregator, and retries
// while it is unreachable. Blocks. ResourceExhausted: the disk has no room for it; nothing was
// fetched. InvalidArgument: the bytes do not have the SHA-256; they are
// deleted. FailedPrecondition with reason `pruned`: the aggregator no longer has this snapshot.
// Otherwise the aggregator's refusal, the status that ended the client, or a status of the disk.
absl::Status FetchSnapshot(const Follower& follower, Connection* connection,
                           const v1::SnapshotInfo& snapshot, const std::string& path,
                           Mirrors* mirrors = nullptr);

// The same for a companion, from the aggregator.
absl::Status FetchCompanion(const Follower& follower, Connection* connection,
                            const v1::CompanionFile& file, const std::string& path);

}  // namespace distro
