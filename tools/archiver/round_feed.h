// The log as it comes: a thread of its own keeps a subscription open, puts rounds together and hands them on. It reads at
// most kAhead rounds ahead, so that replaying one overlaps with receiving the next and memory stays bounded.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/reason_log.h"
#include "common/round_log/round_assembler.h"
#include "tools/archiver/aggregator_client.h"

namespace distro::tools {

class RoundFeed {
 public:
  struct Start {
    std::string run_id;
    RoundId next_round;
    uint64_t log_hash = 0;
    EpochId epoch;   // the highest that was seen
    RoundId rounds;  // of the run: after the last one the feed ends
  };
  struct Parts {
    AggregatorClient* client;
    const Layout* layout;
    Stopper* stopper;
    Log* log;
    const Clock* clock;
  };
  static constexpr size_t kAhead = 2;

  // All parts are borrowed.
  RoundFeed(Start start, Parts parts);
  ~RoundFeed();

  // The next round, in order. Blocks. OutOfRange: that was the last. Cancelled: stopped. FailedPrecondition "diverged" or
  // "pruned": the log does not continue this replica. Otherwise an answer that does not change.
  absl::StatusOr<CommittedRound> Next();

  // The highest epoch that was seen.
  EpochId epoch() const;
  // A higher one was seen elsewhere: frames of lower ones are not taken any more.
  void ObserveEpoch(EpochId epoch);
  uint64_t reconnects() const;

  // The aggregator is at `head`: gives up a subscription that lags it and has had no frame for `patience`.
  void ReopenIfSilent(RoundId head, absl::Duration patience);

 private:
  void Run();
  absl::Status Stream();
  absl::Status Take(RoundAssembler* assembler, v1::SubscribeRoundsResponse frame);
  // False: nobody wants rounds any more.
  bool Push(CommittedRound round);
  void Close(absl::Status status);
  bool Ended() const;
  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !rounds_.empty() || closed_; }
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return rounds_.size() < kAhead || closed_;
  }

  // Constant after construction.
  const Start start_;
  const Parts parts_;

  // Of the feed's thread.
  ReasonLog reasons_;
  uint64_t log_hash_;
  bool progressed_ = false;  // the stream opened or committed a round

  mutable absl::Mutex mu_;
  RoundId next_round_ ABSL_GUARDED_BY(mu_);
  EpochId epoch_ ABSL_GUARDED_BY(mu_);
  std::deque<CommittedRound> rounds_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mu_);
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mu_) = nullptr;  // of the open subscription
  absl::Duration last_frame_ ABSL_GUARDED_BY(mu_);
  uint64_t reconnects_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread thread_;  // last: it begins when the rest is there
};

}  // namespace distro::tools
