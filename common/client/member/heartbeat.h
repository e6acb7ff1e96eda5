// Begins and keeps a session: Join, and heartbeats.
//
// Heartbeat keeps the session alive and learns from the answers where the run stands. Its thread
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
#include "common/client/member/session_context.h"

namespace distro {

// One attempt. Adds the link's measured rate to the request, until the client follows the log. With
// `wait` above 0 it retries a failing connection for that long, at most for the timeout of a call.
// Unavailable with reason `fenced`: an aggregator of the same run that has been replaced answered
// (its epoch is below the request's). Otherwise the aggregator's status.
absl::StatusOr<v1::JoinResponse> JoinOnce(const SessionContext& context, Connection* connection,
                                          const v1::JoinRequest& request,
                                          absl::Duration wait = absl::ZeroDuration());

// Repeats JoinOnce until there is a valid answer. Otherwise the status that ended the session, a
// final refusal, or the status with which `contact` ends the client.
absl::StatusOr<v1::JoinResponse> JoinUntilAnswered(const SessionContext& context,
                                                   Connection* connection,
                                                   const v1::JoinRequest& request,
                                                   FirstContact* contact);

class Heartbeat {
 public:
  Heartbeat(const SessionContext& context, Connection* connection, absl::Duration interval);

  // Sets what the next heartbeats report. A worker that has just caught up reports at once.
  void Report(RoundId next_round, uint64_t log_hash);

  void Run();

 private:
  // Waits until a heartbeat is due or requested. Returns false when the session has ended.
  bool AwaitTurn();
  absl::StatusOr<v1::HeartbeatResponse> Send();
  void Obey(const v1::HeartbeatResponse& response);
  void ObeyDirective(const v1::HeartbeatResponse& response);
  // Logs, once per change, states of the run that a worker must wait for.
  void LogRunState(const v1::HeartbeatResponse& response);
  absl::Status Rejoin();
  // Handles a failed call: ends the session if repeating the call cannot help.
  void Failed(RetriedRpc rpc, const absl::Status& status);

  // Constant after construction.
  const SessionContext context_;
  Connection* const connection_;
  const absl::Duration interval_;

  ReasonLog reasons_;  // has its own locking

  // Of the thread:
  bool failing_ = false;  // the last call got no answer
  bool draining_ = false;
  bool paused_ = false;

  absl::Mutex mu_;
  v1::HeartbeatRequest next_ ABSL_GUARDED_BY(mu_);
  bool caught_up_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace distro
