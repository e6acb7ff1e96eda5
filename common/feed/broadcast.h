// Distributes a run's frames to all subscribers: holds the frame ring, the listeners, and the final
// status. Thread-safe.
//
// A thread of the broadcast wakes listeners, so that a round never waits for its subscribers. It
// wakes those of workers first and at every change, because the next round waits for them; then
// followers, in turn.
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
#include "common/feed/frame_ring.h"

namespace distro {

// The position of one subscriber. A slow subscriber holds no other memory.
struct Cursor {
  RoundId round;
  size_t index = 0;                     // next frame of the round in the ring
  std::vector<uint64_t> segment_bytes;  // [segments], payload bytes of the round that were sent
};

// The receiver of a subscription's wake-ups. Called without locks held, at any time, possibly
// repeatedly.
class Listener {
 public:
  virtual ~Listener() = default;
  // There may be new frames.
  virtual void Wake() = 0;
};

// A subscriber's state in the broadcast.
struct Subscriber {
  std::string worker;                // empty: a follower without a session
  bool objects = false;              // gets objects instead of segment frames
  std::atomic<uint64_t> round{0};    // its position, for the lag
  std::weak_ptr<Listener> listener;  // guarded by Broadcast's mutex, as all that follows
  std::optional<absl::Status> closed;
  RoundId closed_from;  // frames of earlier rounds are still sent
  bool queued = false;  // waits to be woken
};

class Broadcast {
 public:
  // Called with the time that waking some listeners took.
  using BusyObserver = std::function<void(absl::Duration)>;

  // `clock` is borrowed; `observer` may be null.
  Broadcast(uint64_t ring_bytes, RoundId next_round, const Clock* clock = Clock::Real(),
            BusyObserver observer = nullptr);
  ~Broadcast();
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  // For the round thread. Each call wakes the listeners.
  void Open(RoundFrame frame);
  // Replaces the open round's Open frame: subscribers that have the old one are closed with
  // `status`, subscribe again, and see only the new one.
  void Reopen(RoundFrame frame, const absl::Status& status);
  void Add(std::vector<RoundFrame> frames);
  void Commit(RoundFrame frame);
  // No more frames will follow: subscriptions end with `status` after the frames in the ring; those
  // that still read the log end at once if it is not OK.
  void End(const absl::Status& status);
  // Reverts an End with OK, because the run was extended: new subscriptions get further frames.
  void Continue();

  // Adds a subscriber, and closes an older one of the same worker. From now on Close applies to it.
  void Add(const std::shared_ptr<Subscriber>& subscriber);
  // Sets the listener to wake for the subscriber. The listener must check for existing frames
  // itself.
  void Listen(Subscriber* subscriber, std::weak_ptr<Listener> listener);
  void Remove(const Subscriber* subscriber);
  // Ends the subscriptions of a worker.
  void Close(absl::string_view worker, const absl::Status& status);

  // Returns the next frame for the subscriber and advances the cursor, also to the next round.
  // kWait: none yet (a Wake will follow). OutOfRange: all frames were returned and none will
  // follow. Other errors: the subscription was closed with this status.
  absl::StatusOr<RingLookup> Next(const Subscriber& subscriber, Cursor* cursor);

  RoundId head() const;
  // Rounds that the slowest subscriber lags behind the head; 0 without one.
  uint64_t MaxLag() const;
  uint64_t bytes() const;

 private:
  // The body of the thread.
  void WakeListeners();
  void CloseLocked(absl::string_view worker, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for changes; returns the listeners to wake next, or none when the broadcast is destroyed.
  std::vector<std::weak_ptr<Listener>> NextToWake();

  const Clock* const clock_;
  const BusyObserver observer_;

  mutable absl::Mutex mu_;
  FrameRing ring_ ABSL_GUARDED_BY(mu_);
  bool news_ ABSL_GUARDED_BY(mu_) = false;  // workers have not been woken for the last change
  bool destroyed_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Subscriber>> subscribers_ ABSL_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Subscriber>> followers_ ABSL_GUARDED_BY(mu_);  // to be woken

  std::thread thread_;
};

}  // namespace distro
