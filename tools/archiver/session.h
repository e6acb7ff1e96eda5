// One replay, from a snapshot to the end of the feed: applies rounds, compares hashes, and sees to
// what is due between rounds. Lives on the thread that replays; what must not hold it up has
// threads of its own.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/exchange/event_queue.h"
#include "common/process/shell_command.h"
#include "tools/archiver/aggregator_client.h"
#include "tools/archiver/archive.h"
#include "tools/archiver/background_queue.h"
#include "tools/archiver/lag_trend.h"
#include "tools/archiver/metrics.h"
#include "tools/archiver/options.h"
#include "tools/archiver/round_lines.h"

namespace distro::tools {

class Session {
 public:
  struct Parts {
    const ArchiverOptions* options;
    AggregatorClient* client;
    ArchiveFolder* folder;
    ArchiverMetrics* metrics;
    Log* log;
    const Clock* clock;
    RoundLines* lines = nullptr;              // optional
    ShellCommand* publish_command = nullptr;  // optional
  };

  // All parts are borrowed. `run` is the answer that `archive` was opened with.
  Session(v1::GetRunResponse run, Archive archive, Parts parts);

  // Until the run is done, the head of `run` with options.once, or a stop: OK, and everything is
  // saved and sent; after a stop only saved. Otherwise the status that ended it.
  absl::Status Run();

  // Rounds that were applied.
  uint64_t replayed_rounds() const { return replayed_; }

 private:
  // A folder that the publish command gets.
  struct Published {
    RoundId round;
    uint64_t state_hash = 0;
  };
  struct Upload {
    v1::SnapshotInfo snapshot;
    std::string path;
  };

  absl::Status Replay(EventQueue* queue);
  absl::Status Apply(const CommittedRound& round);
  void WriteLine(const CommittedRound& round);
  void CompareHashes(const CommittedRound& round);
  v1::ReportStateRequest StateNow() const;
  void QueueReport();
  bool IntervalEnds() const;
  // Saves and publishes, and a snapshot is due; what fails is logged and counted, and the next
  // interval tries again.
  void EndInterval();
  // Of a run that had not started when the session began; without an answer the next save asks.
  void LearnFingerprint();
  absl::Status Save();
  void PublishFolder();
  // Before a round is applied: uploads the parameters when a snapshot is due, or this is the last
  // round that will vouch for one, and the round's record says that they are right. Otherwise the
  // next round decides again.
  void OfferSnapshot(const CommittedRound& round);
  // Requires a replica at the round of the snapshot.
  void QueueUpload();
  ClientState* client_state() const { return parts_.client->follower().state; }
  bool stopped() const { return client_state()->ended(); }
  // Subscriptions that were opened again since the process began.
  uint64_t Reconnects() const;
  // The first round that is not wanted.
  uint64_t End() const;
  // The rounds that were wanted are all applied.
  bool Finished() const { return next_round_ >= End(); }
  // Publishes what the last round made, and saves it once everything is sent.
  absl::Status Finish();

  // On threads of their own.
  void SendReport(const v1::ReportStateRequest& request);
  void SendSnapshot(const Upload& upload);
  void RunPublishCommand(const Published& published);
  void ObserveHead(const v1::GetRunResponse& run);

  // Constant after construction.
  const v1::GetRunResponse run_;
  const Parts parts_;
  const uint64_t parameter_bytes_;

  // Of the replaying thread.
  Archive archive_;
  uint64_t replayed_ = 0;
  bool upload_due_ = false;
  bool upload_waits_ = false;  // and it was said that no record vouches for one

  // Of the watch.
  LagTrend trend_;
  Pace pace_ = Pace::kKeepsUp;
  uint64_t reconnects_;

  absl::Status publish_status_;  // of the last folder

  std::atomic<uint64_t> next_round_;          // of the replica
  std::atomic<uint64_t> rounds_;              // of the run, as far as the log was replayed
  std::atomic<uint64_t> stored_round_;        // of the newest snapshot that the aggregator has
  std::atomic<uint64_t> round_in_use_ = 0;    // whose folder the publish command has; 0: none
  std::atomic<bool> command_failed_ = false;  // the last time
  BackgroundQueue<v1::ReportStateRequest> reports_;
  BackgroundQueue<Upload> uploads_;
  BackgroundQueue<Published> published_;
};

}  // namespace distro::tools
