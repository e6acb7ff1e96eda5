// Uploads snapshots to the aggregator, on a thread of its own. Of the snapshots that wait, the
// newest is kept. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/base/log.h"
#include "distro/v1/admin.pb.h"
#include "tools/archiver/aggregator_client.h"
#include "tools/archiver/background_queue.h"
#include "tools/archiver/metrics.h"

namespace distro::tools {

class SnapshotUploader {
 public:
  struct Context {
    AggregatorClient* client;
    ArchiverMetrics* metrics;
    Log* log;
  };

  // `run` and everything in `context` are borrowed. Requires a snapshot in `run`.
  SnapshotUploader(const v1::GetRunResponse* run, Context context);

  // Queues the file at `path`. It may be gone when its turn comes: then it is not sent.
  void Add(const v1::SnapshotInfo& snapshot, const std::string& path) {
    uploads_.Add({snapshot, path});
  }

  // Blocks until nothing waits or is sent.
  void AwaitIdle() { uploads_.AwaitIdle(); }

  // The aggregator's newest snapshot, as far as known.
  uint64_t stored_round() const { return stored_round_; }

 private:
  struct Upload {
    v1::SnapshotInfo snapshot;
    std::string path;
  };

  void Send(const Upload& upload);  // on the queue's thread

  // Constant after construction.
  const v1::GetRunResponse* const run_;
  const Context context_;

  std::atomic<uint64_t> stored_round_;
  BackgroundQueue<Upload> uploads_;
};

}  // namespace distro::tools
