// The state that all subscribers share: the frame ring, the listeners, and the end. Thread-safe.
//
// Listeners are woken by a thread of the broadcast's own, so that a round never waits for its
// subscribers: those of workers first and at every news, as the next round waits for them; then
// followers in turn, however many there are.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/subscription/frame_ring.h"

namespace distro::server {

// The place of one subscriber. A slow one holds nothing but its place.
struct Cursor {
  RoundId round;
  size_t index = 0;                     // next frame of the round in the ring
  std::vector<uint64_t> segment_bytes;  // [segments], payload bytes of the round that were sent
};

// One end of a subscription, called without locks held. The call may come at any time and repeat.
class Listener {
 public:
  virtual ~Listener() = default;
  // There is (or may be) something new.
  virtual void Wake() = 0;
};

// A subscriber as the broadcast knows it.
struct Subscriber {
  std::string worker;                // empty: a follower without a session
  std::atomic<uint64_t> round{0};    // its place, for the lag
  std::weak_ptr<Listener> listener;  // guarded by Broadcast's mutex, as all that follows
  std::optional<absl::Status> closed;
  RoundId closed_from;  // frames of earlier rounds still come
  bool queued = false;  // waits to be woken
};

class Broadcast {
 public:
  // Told how long the waking of some listeners took.
  using BusyObserver = std::function<void(absl::Duration)>;

  // `clock` is borrowed; `observer` may be null.
  Broadcast(uint64_t ring_bytes, RoundId next_round, const Clock* clock = Clock::Real(),
            BusyObserver observer = nullptr);
  ~Broadcast();
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  // The round thread's side; after each the listeners are woken.
  void Open(RoundFrame frame);
  // The open round got another Open frame: everybody who has what was before it subscribes again,
  // and sees only this one.
  void Reopen(RoundFrame frame, const absl::Status& status);
  void Add(std::vector<RoundFrame> frames);
  void Commit(RoundFrame frame);
  // No frames will follow: subscriptions end with `status` when they have sent what is there; those
  // that still read the log end at once when it is not OK.
  void End(const absl::Status& status);
  // Frames follow after all: an End that was OK is taken back, for subscriptions that come now.
  void Continue();

  // Adds a subscriber; an older one of the same worker is closed. From now on Close reaches it.
  void Add(const std::shared_ptr<Subscriber>& subscriber);
  // Who is woken for it from now on; it looks for itself at what is there already.
  void Listen(Subscriber* subscriber, std::weak_ptr<Listener> listener);
  void Remove(const Subscriber* subscriber);
  // Ends the subscriptions of a worker.
  void Close(absl::string_view worker, const absl::Status& status);

  // The frame after the cursor, which moves behind it. kWait: nothing yet (a Wake will come). Moves
  // to the next round by itself. OutOfRange: all is sent and nothing will follow. Other errors: the
  // subscription was closed with it.
  absl::StatusOr<RingLookup> Next(const Subscriber& subscriber, Cursor* cursor);

  RoundId head() const;
  // Rounds that the slowest subscriber lags behind the head; 0 without one.
  uint64_t MaxLag() const;
  uint64_t bytes() const;

 private:
  // The thread's body.
  void WakeListeners();
  void CloseLocked(absl::string_view worker, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Those who are woken next; empty: the broadcast is destroyed. Waits for news.
  std::vector<std::weak_ptr<Listener>> NextToWake();

  const Clock* const clock_;
  const BusyObserver observer_;

  mutable absl::Mutex mu_;
  FrameRing ring_ ABSL_GUARDED_BY(mu_);
  bool news_ ABSL_GUARDED_BY(mu_) = false;  // that workers do not know yet
  bool destroyed_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Subscriber>> subscribers_ ABSL_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Subscriber>> followers_ ABSL_GUARDED_BY(mu_);  // to be woken

  std::thread thread_;
};

}  // namespace distro::server
