// Sends updates in the background: a thread offers each update to the aggregator until its round is
// committed, again after every interruption and to every new epoch. Segments that the aggregator
// already has are not sent again.
//
// Run() is the thread's body; Add is thread-safe.
#pragma once

#include <map>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reason_log.h"
#include "common/client/connection.h"
#include "common/client/exchange/exchange.h"
#include "common/client/member/session_context.h"

namespace distro {

class Uploader {
 public:
  Uploader(const SessionContext& context, Connection* connection);

  // Keeps the update until its round is committed or it is refused for good. Does not block.
  void Add(RoundUpdate update);

  void Run();

 private:
  struct Pending {
    RoundUpdate update;
    EpochId accepted;      // the epoch in which all of it was acknowledged; 0: none
    bool refused = false;  // FailedPrecondition: its round may be over
    bool offered = false;  // a stream was begun; the aggregator may have received all of it
    int malformed = 0;     // how often its bytes were refused
  };

  // Removes updates whose round is over. Returns the oldest of the others that is not acknowledged
  // in this epoch.
  std::optional<RoundUpdate> NextOffer(const ClientView& view);
  // Whether the update may have been damaged on the way: its bytes were refused, but fewer than
  // kMaxMalformed times.
  bool MayBeDamaged(RoundId round, const absl::Status& status);
  // `start` is the session's view when the offer began.
  void Handle(const RoundUpdate& update, const ClientView& start, const absl::Status& status);
  // Waits `delay` before the next attempt; returns early when the epoch or the round changes, a
  // round opens, or the aggregator is back.
  void Await(RoundId round, const ClientView& start, bool refused, absl::Duration delay);
  // Removes the update, unless the worker has replaced it meanwhile.
  void Forget(const RoundUpdate& update);

  // Constant after construction.
  const SessionContext context_;
  Connection* const connection_;

  Backoff backoff_;  // of the thread
  ReasonLog reasons_;

  absl::Mutex mu_;
  std::map<RoundId, Pending> pending_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
