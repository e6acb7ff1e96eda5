// Rounds on their way from the subscription to the training thread: bounded, so that a slow worker
// holds back its subscription instead of filling memory. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/round_log/round_assembler.h"

namespace distro {

// Payload bytes that an event holds.
uint64_t EventBytes(const RoundEvent& event);

class EventQueue {
 public:
  // Holds at most `max_events` events and `max_bytes` payload bytes, but always room for one event.
  EventQueue(size_t max_events, uint64_t max_bytes)
      : max_events_(max_events), max_bytes_(max_bytes) {}

  // Blocks while the queue is full. False: it was closed, the event is dropped.
  bool Push(RoundEvent event);
  // Whether Push of an event would block now.
  bool Full(const RoundEvent& event) const;

  // The oldest event; blocks. Once closed and empty, the status of Close.
  absl::StatusOr<RoundEvent> Pop();
  // Whether Pop would return at once.
  bool Ready() const;

  // No more events come. `drop`: those that wait are lost, and this status counts; otherwise the
  // first one does.
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
