// The state that the threads of one client of an aggregator share: the position of the run, the
// calls in flight, and the end. Threads meet here and nowhere else: each waits for a change, looks
// at the view, acts alone.
//
//   ClientCall call(&state);                        // cancelled by End
//   stub->GetRun(call.context(), ...);
//   state.Update([](ClientView& view) { ... });     // wakes who waits
//   if (!state.Sleep(delay)) return state.end_status();
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
#include "grpcpp/client_context.h"

namespace distro {

struct ClientView {
  uint64_t version = 0;        // rises with every change below
  EpochId epoch;               // the highest seen
  RoundId head;                // open or next to open, as the aggregator last said
  RoundId next_round;          // the first whose commit was not received
  bool head_wanted = false;    // a call was refused: ask at once where the run stands
  bool following = false;      // the client has parameters and follows the log with them
  bool subscribed = false;     // a subscription is open ...
  bool delivering = false;     // ... and waits for who takes the rounds, not for the network
  EpochId subscription_epoch;  // of the frames of the open subscription
  absl::Duration last_frame;   // monotonic time of its last frame, or of its opening
  uint64_t reopens = 0;        // subscriptions that were given up because they lagged in silence
  uint64_t opens = 0;          // rounds that opened
  uint64_t returns = 0;        // times that the aggregator answered again after it had not
};

// Why the open subscription should be given up and opened again, or empty: it lags what the
// aggregator said, and no frame came for `patience`. Pure.
std::string ReasonToReopen(const ClientView& view, absl::Duration now, absl::Duration patience);

// What an answer of a lower epoch than is known means: its sender was replaced. Unavailable with
// reason `fenced`.
absl::Status FencedError(EpochId epoch, EpochId newest);

class ClientState {
 public:
  // What is known at the beginning.
  explicit ClientState(EpochId epoch = EpochId(), RoundId head = RoundId());
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;

  ClientView view() const;

  // Changes the view: `change` runs under the lock and must not call back.
  void Update(const std::function<void(ClientView&)>& change);
  // The epoch only rises.
  void ObserveEpoch(EpochId epoch);
  // A frame of the open subscription came.
  void ObserveFrame(EpochId epoch, absl::Duration now);
  // The aggregator said where it stands.
  void ObserveHead(EpochId epoch, RoundId head);
  void WantHead();
  // Gives the open subscription up when ReasonToReopen says so; returns that.
  std::string ReopenIfSilent(absl::Duration now, absl::Duration patience);

  // Waits for a version above `seen`, for `timeout` at most. False: the client has ended.
  bool AwaitChange(uint64_t seen, absl::Duration timeout) const;
  // Waits whatever changes. False: the client has ended.
  bool Sleep(absl::Duration duration) const;
  // The same, but wakes when the aggregator is back or a subscription was given up since `start`.
  bool SleepUnlessNews(absl::Duration duration, const ClientView& start) const;

  // Ends the client: wakes every waiter, cancels all calls, also those that begin later. The first
  // status stays.
  void End(absl::Status status);
  bool ended() const;
  // OK until the client has ended.
  absl::Status end_status() const;

 private:
  friend class ClientCall;

  // Wakes the waiters and cancels the calls that the new view makes useless.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  mutable absl::CondVar changed_;
  ClientView view_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);
  std::set<class ClientCall*> calls_ ABSL_GUARDED_BY(mu_);
};

// The context of a client's call: cancelled when the client ends or `still_wanted` no longer holds
// of its view. `state` is borrowed.
class ClientCall {
 public:
  using StillWanted = std::function<bool(const ClientView&)>;

  explicit ClientCall(ClientState* state, StillWanted still_wanted = nullptr);
  ~ClientCall();
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

 private:
  friend class ClientState;
  ClientState* const state_;
  const StillWanted still_wanted_;
  grpc::ClientContext context_;
};

}  // namespace distro
