// What all subscribers see: the frame ring, who listens, and when it ends. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/round/frame_ring.h"

namespace distro::server {

// The place of one subscriber. A slow one holds nothing but its place.
struct Cursor {
  RoundId round;
  size_t index = 0;                     // next frame of the round in the ring
  std::vector<uint64_t> segment_bytes;  // [segments], payload bytes of the round that were sent
};

// One end of a subscription, called by any thread without locks held. Both calls may come at any time and repeat.
class Listener {
 public:
  virtual ~Listener() = default;
  // There is (or may be) something new.
  virtual void Wake() = 0;
};

// A subscriber as the broadcast knows it.
struct Subscriber {
  std::string worker;                  // empty: a follower without a session
  std::atomic<uint64_t> round{0};      // its place, for the lag
  std::weak_ptr<Listener> listener;    // set before Add
  std::optional<absl::Status> closed;  // guarded by Broadcast's mutex
};

class Broadcast {
 public:
  Broadcast(uint64_t ring_bytes, RoundId next_round) : ring_(ring_bytes, next_round) {}

  // The round thread's side; each wakes the listeners. Not to be called with locks held.
  void Open(RoundFrame frame);
  // The open round got another Open frame: everybody subscribes again and sees only this one.
  void Reopen(RoundFrame frame, const absl::Status& status);
  void Add(std::vector<RoundFrame> frames);
  void Commit(RoundFrame frame);
  // No frames will follow: subscriptions end with `status` when they have sent what is there (OK), or at once.
  void End(const absl::Status& status);

  // Adds a subscriber; an older one of the same worker is closed.
  void Add(const std::shared_ptr<Subscriber>& subscriber);
  void Remove(const Subscriber* subscriber);
  // Marks the subscriptions of a worker as ended; a Wake must follow. May be called with locks held.
  void Close(absl::string_view worker, const absl::Status& status);

  // Wakes the listeners when a subscription was marked. Not to be called with locks held.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  // The frame after the cursor, which moves behind it. kWait: nothing yet (a Wake will come). Moves to the next round by itself.
  // OutOfRange: all is sent and nothing will follow. Other errors: the subscription was closed with it.
  absl::StatusOr<RingLookup> Next(const Subscriber& subscriber, Cursor* cursor);

  RoundId head() const;
  // Rounds that the slowest subscriber lags behind the head; 0 without one.
  uint64_t MaxLag() const;
  uint64_t bytes() const;

 private:
  void WakeAll() ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  FrameRing ring_ ABSL_GUARDED_BY(mu_);
  bool marked_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Subscriber>> subscribers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
