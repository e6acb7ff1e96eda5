// Writes the data folder of a run that goes on from an archive, where the aggregator's own is gone
// (docs/operations.md, "When the aggregator's disk is gone"). The folder is that of an aggregator
// which has dropped the results of all rounds before the archive's copy of the parameters: that
// copy is its initial snapshot, and the log begins with the headers that the archive has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/companions.h"
#include "distro/v1/snapshot.pb.h"
#include "distro/v1/store.pb.h"
#include "server/log/disk.h"

namespace distro::server {

// Headers that a restored run needs at least: they say which samples of the next two rounds are
// whose.
inline constexpr size_t kLeastRestoredHeaders = 2;

struct RestoredRun {
  v1::StoredArchive archive;   // identity and headers
  uint64_t epoch = 0;          // the highest that was seen
  v1::SnapshotInfo snapshot;   // the copy: round, size, SHA-256, state hash, log_hash
  std::string snapshot_path;   // its file
  Companions companions = {};  // of archive.run
};

// Writes all of it, run.pb last: with it the run exists. InvalidArgument: the copy and the headers
// do not belong together (run, tensors, chain, state hash), or are too few. AlreadyExists:
// `data_dir` holds something. Reason "disk": it could not be written; remove the folder and try
// again. Blocking; holds all parameters in memory while it checks them.
absl::Status WriteRestoredRun(const std::string& data_dir, const RestoredRun& restored, Disk* disk);

}  // namespace distro::server
