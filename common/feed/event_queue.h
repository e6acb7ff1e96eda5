// A queue of rounds from the subscription to the training thread. Bounded, so that a slow worker
// delays its subscription instead of filling memory. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/feed/round_assembler.h"

namespace distro {

// Payload bytes in an event.
uint64_t EventBytes(const RoundEvent& event);

class EventQueue {
 public:
  // Holds at most `max_events` events and `max_bytes` payload bytes, but always room for one event.
  EventQueue(size_t max_events, uint64_t max_bytes)
      : max_events_(max_events), max_bytes_(max_bytes) {}

  // Blocks while the queue is full. Returns false, and drops the event, if it was closed.
  bool Push(RoundEvent event);
  // Whether Push of an event would block now.
  bool Full(const RoundEvent& event) const;

  // Removes the oldest event; blocks while the queue is empty. Returns the status of Close once it
  // is closed and empty.
  absl::StatusOr<RoundEvent> Pop();
  // Whether Pop would return at once.
  bool Ready() const;

  // Ends the queue. With `drop`, waiting events are discarded and this status replaces an earlier
  // one; otherwise the first status counts.
  void Close(absl::Status status, bool drop);

 private:
  bool FullLocked(const RoundEvent& event) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const size_t max_events_;
  const uint64_t max_bytes_;

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::deque<RoundEvent> events_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
