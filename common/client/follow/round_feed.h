// Follows the log: a thread reads SubscribeRounds into a queue, and reopens the stream from the
// last committed round whenever it breaks. If the queue is full, the stream waits, so memory is
// bounded.
//
//   EventQueue queue(2, UINT64_MAX);
//   const RoundFeed feed(follower, connection, &layout, {.run_id = ..., ...}, &queue);
//   while (true) {
//     absl::StatusOr<RoundEvent> event = queue.Pop();
//
// When the feed ends it closes the queue with one of: OutOfRange, the run is done; the status that
// ended the client; FailedPrecondition "diverged" or "pruned", the log does not continue this
// replica; another final refusal. The last two also end a member's session. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/reason_log.h"
#include "common/client/connection.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/client/follow/follower.h"
#include "common/client/follow/mirrors.h"
#include "common/feed/event_queue.h"
#include "common/feed/round_assembler.h"
#include "distro/v1/session.pb.h"

namespace distro {

class RoundFeed {
 public:
  struct Start {
    std::string run_id;
    v1::WorkerIdentity worker = {};  // of the member; empty without a session
    RoundId next_round;
    // Chain hash of the record before next_round; 0 for round 0 if the start record is not known.
    uint64_t log_hash = 0;
    RoundId rounds;  // the run's number of rounds, as known now: later records may extend it
    std::vector<std::string> mirrors = {};  // URLs, in the order to try them
  };

  // All borrowed. The queue receives committed rounds; a member's also receives opened ones.
  RoundFeed(const Follower& follower, Connection* connection, const Layout* layout, Start start,
            EventQueue* queue);
  // Closes the queue and drops its content; the client continues.
  ~RoundFeed();
  RoundFeed(const RoundFeed&) = delete;
  RoundFeed& operator=(const RoundFeed&) = delete;

 private:
  void Run();
  // Reads one stream from opening to end. Never returns OK while rounds are missing. `start` is the
  // view before the stream.
  absl::Status Stream(const ClientView& start);
  absl::Status Take(RoundAssembler* assembler, v1::SubscribeRoundsResponse frame);
  absl::Status Commit(CommittedRound round);
  void Deliver(RoundEvent event);
  void Measure(const v1::SubscribeRoundsResponse& frame);
  bool done() const { return next_round_ >= rounds_; }
  // Whether the stream should be opened again, because it was opened with or without objects and
  // the other is better now.
  bool Switches() const { return next_round_ > began_at_ && Asks() != objects_; }
  // Whether the next stream should be of objects.
  bool Asks() const { return !failed_ && mirrors_.usable(); }

  // Constant after construction.
  const Follower follower_;
  Connection* const connection_;
  const Layout* const layout_;
  const Start start_;
  EventQueue* const queue_;

  // Of the feed's thread:
  RoundId next_round_;
  uint64_t log_hash_;
  RoundId rounds_;
  bool progressed_ = false;  // the stream opened or committed a round
  Mirrors mirrors_;
  bool objects_ = false;  // the stream was opened for objects
  bool failed_ = false;   // a mirror ended a stream, and no round was committed since
  RoundId began_at_;      // the first round of the stream
  uint64_t reopens_ = 0;  // of the view, when the stream was opened
  std::optional<absl::Duration> last_segment_frame_;
  FlightTime flight_;  // of the stream
  ReasonLog reasons_;

  std::atomic<bool> closing_ = false;
  std::thread thread_;  // last: starts after the other members are initialized
};

// Closes the subscription if it is behind the aggregator's head and had no frame for `patience`.
// Call it when the head is learned.
void ReopenIfSilent(const Follower& follower, absl::Duration patience);

}  // namespace distro
