// The state shared by the threads of one client of an aggregator: the position in the run, the
// calls in flight, and whether the client has ended. Threads communicate only through it: each
// waits for a change, reads the view, and acts on its own.
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
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/steady_cond_var.h"
#include "grpcpp/client_context.h"

namespace distro {

struct ClientView {
  uint64_t version = 0;        // rises with every change below
  EpochId epoch;               // the newest seen (NewestEpoch)
  RoundId head;                // open or next to open, as the aggregator last said
  RoundId next_round;          // the first round whose commit has not been received
  bool head_wanted = false;    // a call was refused: ask at once where the run stands
  bool following = false;      // the client has parameters and follows the log
  bool subscribed = false;     // a subscription is open
  bool delivering = false;     // blocked on the consumer of the rounds, not on the network
  EpochId subscription_epoch;  // of the open subscription's frames
  absl::Duration last_frame;   // monotonic time of its last frame; before the first, of its opening
  uint64_t reopens = 0;        // subscriptions closed early, such as for lagging silently
  uint64_t opens = 0;          // rounds that opened
  uint64_t returns = 0;        // times the aggregator answered again after an outage
};

// Returns why the open subscription should be closed and reopened, or an empty string. It should
// when it is behind what the aggregator said and no frame came for `patience`. Pure.
std::string ReasonToReopen(const ClientView& view, absl::Duration now, absl::Duration patience);

// Unavailable with reason `fenced`: `newest`, the newest epoch known, is newer than this one of an
// answer (NewestEpoch), whose sender has been replaced.
absl::Status CheckEpoch(EpochId epoch, EpochId newest, absl::Time now);

class ClientState {
 public:
  // Starts with the epoch and the head that are already known.
  explicit ClientState(EpochId epoch = EpochId(), RoundId head = RoundId());
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;

  ClientView view() const;

  // Changes the view. `change` runs under the lock and must not call this object.
  void Update(const std::function<void(ClientView&)>& change);
  // Sets the view's epoch if this one is newer (NewestEpoch).
  void ObserveEpoch(EpochId epoch);
  // Records a frame of the open subscription.
  void ObserveFrame(EpochId epoch, absl::Duration now);
  // Records where the aggregator says the run stands.
  void ObserveHead(EpochId epoch, RoundId head);
  void WantHead();
  // Closes the open subscription if ReasonToReopen says so. Returns the reason.
  std::string ReopenIfSilent(absl::Duration now, absl::Duration patience);

  // Waits until `done`, which is called under the lock and must not call this object, at most
  // `timeout`. False: the client has ended.
  bool Await(absl::Duration timeout, absl::FunctionRef<bool(const ClientView&)> done) const;
  // The same until the version is above `seen`.
  bool AwaitChange(uint64_t seen, absl::Duration timeout) const;
  // Waits for `duration`, regardless of changes. False: the client has ended.
  bool Sleep(absl::Duration duration) const;
  // Like Sleep, but also wakes when the aggregator is back or a subscription was closed since
  // `start`.
  bool SleepUnlessNews(absl::Duration duration, const ClientView& start) const;

  // Ends the client: wakes all waiters and cancels all calls, including later ones. The first
  // status stays.
  void End(absl::Status status);
  bool ended() const;
  // OK until the client has ended.
  absl::Status end_status() const;

 private:
  friend class ClientCall;

  // Wakes the waiters and cancels the calls that the new view makes unnecessary.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  mutable SteadyCondVar changed_;
  ClientView view_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);
  std::set<class ClientCall*> calls_ ABSL_GUARDED_BY(mu_);
};

// The gRPC context of one call. It is cancelled when the client ends, or when `still_wanted` is
// false for the current view. `state` is borrowed.
class ClientCall {
 public:
  using StillWanted = std::function<bool(const ClientView&)>;

  explicit ClientCall(ClientState* state, StillWanted still_wanted = nullptr);
  ~ClientCall();
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  // A call after a failed one must wait for a connection (set_wait_for_ready): gRPC polls one that
  // is being made only while a call waits for it, otherwise every 5 s, so that a handshake of
  // several round trips would time out. A call that does not wait fails as soon as an attempt to
  // connect has failed.
  grpc::ClientContext* context() { return &context_; }

 private:
  friend class ClientState;
  ClientState* const state_;
  const StillWanted still_wanted_;
  grpc::ClientContext context_;
};

}  // namespace distro
