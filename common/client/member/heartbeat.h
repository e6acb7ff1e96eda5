// The calls that begin a session and keep it: Join, and heartbeats.
//
// Heartbeat keeps a session alive and learns from the answers where the run stands: one thread that
// sends heartbeats, and joins again when the aggregator asks for it.
//
// Run() is the thread's body; Report is thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reason_log.h"
#include "common/client/connection.h"
#include "common/client/first_contact.h"
#include "common/client/member/background.h"

namespace distro {

// One attempt, with the link's measured rate filled in; with `wait` above 0 it waits so long, and
// no longer than a call may take, for a connection that fails.
// Unavailable with reason `fenced`: the answer is that of an aggregator of the same run that was
// replaced (its epoch is below the request's). Otherwise the aggregator's status.
absl::StatusOr<v1::JoinResponse> JoinOnce(const Background& background, Connection* connection,
                                          const v1::JoinRequest& request,
                                          absl::Duration wait = absl::ZeroDuration());

// Until there is an answer that counts. The status that ended the session, a refusal that does not
// change, or what `contact` ends it with.
absl::StatusOr<v1::JoinResponse> JoinUntilAnswered(const Background& background,
                                                   Connection* connection,
                                                   const v1::JoinRequest& request,
                                                   FirstContact* contact);

class Heartbeat {
 public:
  Heartbeat(const Background& background, Connection* connection, absl::Duration interval);

  // What the next heartbeats say. A worker that has just caught up says so at once.
  void Report(RoundId next_round, uint64_t log_hash);

  void Run();

 private:
  // Waits until a heartbeat is due or wanted. False: the session has ended.
  bool AwaitTurn();
  absl::StatusOr<v1::HeartbeatResponse> Send();
  void Obey(const v1::HeartbeatResponse& response);
  void ObeyDirective(const v1::HeartbeatResponse& response);
  // Says once what the run does that a worker must wait for.
  void LogRunState(const v1::HeartbeatResponse& response);
  absl::Status Rejoin();
  // A call failed: ends the session when repeating it cannot help.
  void Failed(RetriedRpc rpc, const absl::Status& status);

  // Constant after construction.
  const Background background_;
  Connection* const connection_;
  const absl::Duration interval_;

  ReasonLog reasons_;  // has its own locking

  // Of the thread.
  bool failing_ = false;  // the last call had no answer
  bool draining_ = false;
  bool paused_ = false;

  absl::Mutex mu_;
  v1::HeartbeatRequest next_ ABSL_GUARDED_BY(mu_);
  bool caught_up_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace distro
