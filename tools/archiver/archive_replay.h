// One replay, from a snapshot to the end of the feed: applies rounds, compares hashes, and saves,
// publishes and uploads between rounds. Runs on the replaying thread; slow work has threads of its
// own.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/process/shell_command.h"
#include "common/feed/event_queue.h"
#include "tools/archiver/aggregator_client.h"
#include "tools/archiver/archive.h"
#include "tools/archiver/background_queue.h"
#include "tools/archiver/lag_trend.h"
#include "tools/archiver/metrics.h"
#include "tools/archiver/options.h"
#include "tools/archiver/publisher.h"
#include "tools/archiver/round_lines.h"
#include "tools/archiver/snapshot_uploader.h"

namespace distro::tools {

class ArchiveReplay {
 public:
  struct Context {
    const ArchiverOptions* options;
    AggregatorClient* client;
    ArchiveFolder* folder;
    ArchiverMetrics* metrics;
    Log* log;
    const Clock* clock;
    RoundLines* lines = nullptr;              // optional
    ShellCommand* publish_command = nullptr;  // optional
    std::vector<std::string> mirrors = {};    // URLs
  };

  // Everything in `context` is borrowed. `run` is the response that `archive` was opened with.
  ArchiveReplay(v1::GetRunResponse run, Archive archive, Context context);

  // Replays until the run is done, the head of `run` is reached (with options.once), or a stop.
  // Then returns OK, with everything saved and sent; after a stop only saved. Otherwise the status
  // that ended it.
  absl::Status Run();

  // Number of rounds applied.
  uint64_t replayed_rounds() const { return replayed_; }

 private:
  absl::Status ReplayRounds(EventQueue* queue);
  absl::Status Apply(const CommittedRound& round);
  void WriteLine(const CommittedRound& round);
  void CompareHashes(const CommittedRound& round);
  v1::ReportStateRequest StateNow() const;
  void QueueReport();
  bool IntervalEnds() const;
  // Saves, publishes, and requests an upload. A failure is logged and counted, and the next
  // interval tries again.
  void EndInterval();
  // Learns the data fingerprint, if the run had not started when the replay began. If there is no
  // answer, the next save asks again.
  void LearnFingerprint();
  absl::Status Save();
  void Publish();
  // Called before a round is applied. Uploads the parameters if a snapshot is due or no later round
  // will confirm one, and if the round's record confirms their hash. Otherwise the next round
  // decides again.
  void OfferSnapshot(const CommittedRound& round);
  ClientState* client_state() const { return context_.client->follower().state; }
  bool stopped() const { return client_state()->ended(); }
  // Times the subscription was reopened since the process began.
  uint64_t Reconnects() const;
  // The newest epoch seen, to be kept with the copy.
  uint64_t Epoch() const;
  // The first round not to replay.
  uint64_t End() const;
  // Whether all rounds up to End() are applied.
  bool Finished() const { return next_round_ >= End(); }
  // Publishes the final parameters, and saves them once everything is sent.
  absl::Status Finish();

  // Called on other threads:
  void SendReport(const v1::ReportStateRequest& request);
  void ObserveHead(const v1::GetRunResponse& run);

  // Constant after construction.
  const v1::GetRunResponse run_;
  const Context context_;
  const uint64_t parameter_bytes_;

  // Of the replaying thread:
  Archive archive_;
  uint64_t replayed_ = 0;
  bool upload_due_ = false;
  bool upload_waits_ = false;  // already logged that no record confirms one

  // Of the thread of HeadWatch:
  LagTrend trend_;
  Pace pace_ = Pace::kKeepsUp;
  uint64_t reconnects_;

  std::atomic<uint64_t> next_round_;  // of the replica
  std::atomic<uint64_t> rounds_;      // of the run, according to the replayed log
  BackgroundQueue<v1::ReportStateRequest> reports_;
  SnapshotUploader uploader_;
  Publisher publisher_;
};

}  // namespace distro::tools
