// Writes a data folder that continues a run from an archive, after the aggregator's own folder was
// lost (docs/operations.md, "When the aggregator's disk is gone"). It looks like the folder of an
// aggregator that has dropped the results of all rounds before the archive's copy of the
// parameters. That copy is its initial snapshot, and the log begins with the headers in the
// archive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/model/checkpoint/companions.h"
#include "distro/v1/snapshot.pb.h"
#include "distro/v1/store.pb.h"
#include "server/log/disk.h"

namespace distro::server {

// The minimum number of headers of a restored run: they assign the samples of the next two rounds.
inline constexpr size_t kLeastRestoredHeaders = 2;

struct RestoredRun {
  v1::StoredArchive archive;   // identity and headers
  uint64_t epoch = 0;          // the highest seen
  v1::SnapshotInfo snapshot;   // the copy: round, size, SHA-256, state hash, log_hash
  std::string snapshot_path;   // its file
  Companions companions = {};  // of archive.run
};

// Writes all files, run.pb last: with it the run exists. InvalidArgument: the copy and the headers
// do not match (run, tensors, chain, state hash), or there are too few headers. AlreadyExists:
// `data_dir` is not empty. Reason "disk": it could not be written; remove the folder and try again.
// Blocking; holds all parameters in memory while it checks them.
absl::Status WriteRestoredRun(const std::string& data_dir, const RestoredRun& restored, Disk* disk);

}  // namespace distro::server
