// What the threads of one session with an aggregator know together: where the run stands, which calls are in flight, and
// how the session ended. Threads meet here and nowhere else: each waits for a change, looks at the view, acts alone.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "distro/v1/session.pb.h"
#include "grpcpp/client_context.h"

namespace distro {

struct SessionView {
  uint64_t version = 0;           // rises with every change below
  EpochId epoch;                  // the highest seen
  RoundId head;                   // open or next to open, as the last heartbeat said
  RoundId next_round;             // the first whose commit was not received
  bool heartbeat_wanted = false;  // a call was refused: ask at once where the run stands
  bool following = false;         // the worker has parameters and follows the log with them
  bool subscribed = false;        // a subscription is open ...
  bool delivering = false;        // ... and waits for the training thread, not for the network
  EpochId subscription_epoch;     // of the frames of the open subscription
  absl::Duration last_frame;      // monotonic time of its last frame, or of its opening
  uint64_t reopens = 0;           // subscriptions that were given up because they lagged in silence
  uint64_t opens = 0;             // rounds that opened
  uint64_t returns = 0;           // times that the aggregator answered again after it had not
};

// Why the open subscription should be given up and opened again, or empty: it lags what a heartbeat said, and no frame
// came for `patience`. Pure.
std::string ReasonToReopen(const SessionView& view, absl::Duration now, absl::Duration patience);

// What an answer of a lower epoch than is known means: its sender was replaced. Unavailable with reason `fenced`.
absl::Status FencedError(EpochId epoch, EpochId newest);

class Session {
 public:
  // `request` began the session, or will: then `response` is empty.
  Session(v1::JoinRequest request, const v1::JoinResponse& response);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Constant.
  const v1::WorkerIdentity& worker() const { return request_.worker(); }
  const std::string& run_id() const { return request_.run_id(); }
  // Constant.
  RoundId rounds() const { return rounds_; }

  // Asks to join again: the run and the highest epoch seen are filled in.
  v1::JoinRequest RejoinRequest() const;

  SessionView view() const;
  // The session may go on, as far as `response` to a repeated Join tells. FailedPrecondition, reason `other_run`, names what differs.
  absl::Status CheckSameRun(const v1::JoinResponse& response) const;

  // Changes the view: `change` runs under the lock and must not call back.
  void Update(const std::function<void(SessionView&)>& change);
  // The epoch only rises.
  void ObserveEpoch(EpochId epoch);
  // A frame of the open subscription came.
  void ObserveFrame(EpochId epoch, absl::Duration now);
  void ObserveHeartbeat(const v1::HeartbeatResponse& response);
  void WantHeartbeat();

  // Waits for a version above `seen`, for `timeout` at most. False: the session has ended.
  bool AwaitChange(uint64_t seen, absl::Duration timeout) const;
  // Waits whatever changes. False: the session has ended.
  bool Sleep(absl::Duration duration) const;
  // The same, but wakes when the aggregator is back: view().returns is no longer `returns`.
  bool SleepUnlessBack(absl::Duration duration, uint64_t returns) const;

  // Ends the session: wakes every waiter, cancels all calls. The first status stays.
  void End(absl::Status status);
  bool ended() const;
  // OK until the session has ended.
  absl::Status end_status() const;

 private:
  friend class SessionCall;
  using StillWanted = std::function<bool(const SessionView&)>;

  // Wakes the waiters and cancels the calls that the new view makes useless.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  v1::JoinRequest request_;
  RoundId rounds_;
  std::string manifest_hash_;
  uint32_t segment_blocks_ = 0;

  mutable absl::Mutex mu_;
  mutable absl::CondVar changed_;
  SessionView view_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);
  std::set<class SessionCall*> calls_ ABSL_GUARDED_BY(mu_);
};

// The context of a call that belongs to a session: cancelled when the session ends or `still_wanted` no longer holds
// of its view. `session` is borrowed.
class SessionCall {
 public:
  using StillWanted = std::function<bool(const SessionView&)>;

  explicit SessionCall(Session* session, StillWanted still_wanted = nullptr);
  ~SessionCall();
  SessionCall(const SessionCall&) = delete;
  SessionCall& operator=(const SessionCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

 private:
  friend class Session;
  Session* const session_;
  const StillWanted still_wanted_;
  grpc::ClientContext context_;
};

}  // namespace distro
