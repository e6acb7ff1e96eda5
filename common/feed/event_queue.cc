#include "common/feed/event_queue.h"

#include <utility>
#include <variant>

namespace distro {

uint64_t EventBytes(const RoundEvent& event) {
  const auto* committed = std::get_if<CommittedRound>(&event);
  if (committed == nullptr) return 0;
  uint64_t bytes = 0;
  for (const SharedBytes& payload : committed->payloads) bytes += payload->size();
  return bytes;
}

bool EventQueue::FullLocked(const RoundEvent& event) const {
  if (events_.empty()) return false;
  return events_.size() >= max_events_ || bytes_ + EventBytes(event) > max_bytes_;
}

bool EventQueue::Full(const RoundEvent& event) const {
  absl::MutexLock lock(&mu_);
  return FullLocked(event);
}

bool EventQueue::Push(RoundEvent event) {
  absl::MutexLock lock(&mu_);
  while (!closed_ && FullLocked(event)) changed_.Wait(&mu_);
  if (closed_) return false;
  bytes_ += EventBytes(event);
  events_.push_back(std::move(event));
  changed_.SignalAll();
  return true;
}

absl::StatusOr<RoundEvent> EventQueue::Pop() {
  absl::MutexLock lock(&mu_);
  while (!closed_ && events_.empty()) changed_.Wait(&mu_);
  if (events_.empty()) return status_;
  RoundEvent event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= EventBytes(event);
  changed_.SignalAll();
  return event;
}

bool EventQueue::Ready() const {
  absl::MutexLock lock(&mu_);
  return closed_ || !events_.empty();
}

void EventQueue::Close(absl::Status status, bool drop) {
  absl::MutexLock lock(&mu_);
  if (drop) {
    events_.clear();
    bytes_ = 0;
  }
  if (!closed_ || drop) status_ = std::move(status);
  closed_ = true;
  changed_.SignalAll();
}

}  // namespace distro
