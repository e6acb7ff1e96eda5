// Follows the run's log: one thread that reads SubscribeRounds into a queue, and opens it again from the last committed
// round whenever it breaks. Results that the training thread does not take hold back the stream, not fill memory.
//
// Run() is the thread's body; it returns when the session ends or the run is done.
#pragma once

#include <optional>
#include <string>

#include "common/base/reason_log.h"
#include "common/client/connection.h"
#include "common/client/member/background.h"
#include "common/exchange/event_queue.h"
#include "common/exchange/flight_time.h"
#include "common/round_log/round_assembler.h"

namespace distro {

class Subscription {
 public:
  // From `next_round` on; `log_hash` is the chain hash of the record before it, 0 when round 0's is not known.
  Subscription(const Background& background, Connection* connection, EventQueue* queue,
               const Layout* layout, RoundId next_round, uint64_t log_hash);

  void Run();

 private:
  // One stream, from opening to its end. Never OK with rounds missing.
  absl::Status Stream();
  absl::Status Take(RoundAssembler* assembler, v1::SubscribeRoundsResponse frame);
  absl::Status Commit(CommittedRound round);
  // False: the session ended meanwhile.
  bool Deliver(RoundEvent event);
  void Measure(const v1::SubscribeRoundsResponse& frame);
  // What a broken stream means: ends the session, or leaves it for another attempt.
  void Judge(const absl::Status& status);
  bool done() const { return next_round_ >= background_.session->rounds(); }

  // Constant after construction.
  const Background background_;
  Connection* const connection_;
  EventQueue* const queue_;
  const Layout* const layout_;

  // Of the thread.
  RoundId next_round_;
  uint64_t log_hash_;
  bool progressed_ = false;  // the stream opened or committed a round
  std::optional<absl::Duration> last_segment_frame_;
  FlightTime flight_;  // of the stream
  ReasonLog reasons_;
};

}  // namespace distro
