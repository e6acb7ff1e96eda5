// Sends updates in the background: one thread that offers each update to the aggregator, again
// after every cut and to every new epoch, until its round is committed. What the aggregator holds
// is not sent twice.
//
// Run() is the thread's body; Add is thread-safe.
#pragma once

#include <map>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reason_log.h"
#include "common/client/connection.h"
#include "common/client/member/background.h"
#include "common/exchange/exchange.h"

namespace distro {

class Uploader {
 public:
  Uploader(const Background& background, Connection* connection);

  // Keeps the update until its round is committed or refused for good. Does not block.
  void Add(RoundUpdate update);

  void Run();

 private:
  struct Pending {
    RoundUpdate update;
    EpochId accepted;      // the epoch that acknowledged all of it; 0 before
    bool refused = false;  // FailedPrecondition: its round may be over
    bool offered = false;  // a stream of it was begun, which may have brought all of it
    int malformed = 0;     // how often it was refused for its bytes
  };

  // Forgets updates whose round is over; the oldest of the others that this epoch has not
  // acknowledged.
  std::optional<RoundUpdate> NextOffer(const ClientView& view);
  // Whether the bytes of the update may be right, and were changed on the way: it was refused for
  // them, not too often yet.
  bool MayBeDamaged(RoundId round, const absl::Status& status);
  // `start` is the session's view when the offer began.
  void Handle(const RoundUpdate& update, const ClientView& start, const absl::Status& status);
  // Waits before the next attempt, but not past news of the epoch, the round or an opening one, or
  // the aggregator's return.
  void Await(RoundId round, const ClientView& start, bool refused, absl::Duration delay);
  // Unless the worker has put another update in its place meanwhile.
  void Forget(const RoundUpdate& update);

  // Constant after construction.
  const Background background_;
  Connection* const connection_;

  Backoff backoff_;  // of the thread
  ReasonLog reasons_;

  absl::Mutex mu_;
  std::map<RoundId, Pending> pending_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
