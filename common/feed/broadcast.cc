#include "common/feed/broadcast.h"

#include <algorithm>
#include <utility>

namespace distro {

Broadcast::Broadcast(uint64_t ring_bytes, RoundId next_round, const Clock* clock,
                     BusyObserver observer)
    : clock_(clock),
      observer_(std::move(observer)),
      ring_(ring_bytes, next_round),
      thread_([this] { WakeListeners(); }) {}

Broadcast::~Broadcast() {
  {
    absl::MutexLock lock(&mu_);
    destroyed_ = true;
  }
  thread_.join();
}

void Broadcast::Open(RoundFrame frame) {
  absl::MutexLock lock(&mu_);
  ring_.Open(std::move(frame));
  news_ = true;
}

void Broadcast::Reopen(RoundFrame frame, const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  ring_.ReplaceOpen(std::move(frame));
  for (const auto& subscriber : subscribers_) {
    if (subscriber->closed) continue;
    subscriber->closed = status;
    subscriber->closed_from = ring_.head();
  }
  news_ = true;
}

void Broadcast::Add(std::vector<RoundFrame> frames) {
  absl::MutexLock lock(&mu_);
  for (RoundFrame& frame : frames) ring_.Add(std::move(frame));
  news_ = true;
}

void Broadcast::Commit(RoundFrame frame) {
  absl::MutexLock lock(&mu_);
  ring_.Commit(std::move(frame));
  news_ = true;
}

void Broadcast::End(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  end_ = status;
  news_ = true;
}

void Broadcast::Continue() {
  absl::MutexLock lock(&mu_);
  if (end_ && end_->ok()) end_.reset();
}

void Broadcast::Add(const std::shared_ptr<Subscriber>& subscriber) {
  absl::MutexLock lock(&mu_);
  if (!subscriber->worker.empty()) {
    CloseLocked(subscriber->worker,
                absl::UnavailableError("a newer subscription of this worker began"));
  }
  subscribers_.push_back(subscriber);
}

void Broadcast::Listen(Subscriber* subscriber, std::weak_ptr<Listener> listener) {
  absl::MutexLock lock(&mu_);
  subscriber->listener = std::move(listener);
}

void Broadcast::Remove(const Subscriber* subscriber) {
  absl::MutexLock lock(&mu_);
  std::erase_if(subscribers_,
                [subscriber](const auto& other) { return other.get() == subscriber; });
}

void Broadcast::Close(absl::string_view worker, const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  CloseLocked(worker, status);
}

void Broadcast::CloseLocked(absl::string_view worker, const absl::Status& status) {
  for (const auto& subscriber : subscribers_) {
    const bool at_once = subscriber->closed && subscriber->closed_from == RoundId(0);
    if (subscriber->worker != worker || at_once) continue;
    subscriber->closed = status;
    subscriber->closed_from = RoundId(0);
    news_ = true;
  }
}

absl::StatusOr<RingLookup> Broadcast::Next(const Subscriber& subscriber, Cursor* cursor) {
  absl::MutexLock lock(&mu_);
  if (ring_.AtEnd(cursor->round, cursor->index)) {
    cursor->round = cursor->round.Next();
    cursor->index = 0;
    std::ranges::fill(cursor->segment_bytes, 0);
  }
  if (subscriber.closed && cursor->round >= subscriber.closed_from) return *subscriber.closed;
  RingLookup found = ring_.Find(cursor->round, cursor->index);
  while (found.frame.segment && found.frame.object != subscriber.objects)
    found = ring_.Find(cursor->round, ++cursor->index);
  if (end_ && !end_->ok() && found.kind != RingLookup::kFrame) return *end_;
  if (end_ && found.kind == RingLookup::kWait) return absl::OutOfRangeError("the run is done");
  if (found.kind != RingLookup::kFrame) return found;
  ++cursor->index;
  if (found.frame.segment)
    cursor->segment_bytes[found.frame.segment->value()] = found.frame.segment_end;
  return found;
}

RoundId Broadcast::head() const {
  absl::MutexLock lock(&mu_);
  return ring_.head();
}

uint64_t Broadcast::MaxLag() const {
  absl::MutexLock lock(&mu_);
  uint64_t lag = 0;
  for (const auto& subscriber : subscribers_) {
    const uint64_t at = subscriber->round.load(std::memory_order_relaxed);
    if (at < ring_.head().value()) lag = std::max(lag, ring_.head().value() - at);
  }
  return lag;
}

uint64_t Broadcast::bytes() const {
  absl::MutexLock lock(&mu_);
  return ring_.bytes();
}

void Broadcast::WakeListeners() {
  while (true) {
    const std::vector<std::weak_ptr<Listener>> listeners = NextToWake();
    if (listeners.empty()) return;
    const absl::Duration begin = clock_->MonotonicNow();
    for (const auto& weak : listeners) {
      if (const auto listener = weak.lock()) listener->Wake();
    }
    if (observer_) observer_(clock_->MonotonicNow() - begin);
  }
}

std::vector<std::weak_ptr<Listener>> Broadcast::NextToWake() {
  absl::MutexLock lock(&mu_);
  std::vector<std::weak_ptr<Listener>> next;
  while (next.empty()) {
    mu_.Await(absl::Condition(
        +[](Broadcast* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mu_) {
          return self->destroyed_ || self->news_ || !self->followers_.empty();
        },
        this));
    if (destroyed_) return {};
    if (std::exchange(news_, false)) {
      for (const auto& subscriber : subscribers_) {
        if (!subscriber->worker.empty()) {
          next.push_back(subscriber->listener);
        } else if (!std::exchange(subscriber->queued, true)) {
          followers_.push_back(subscriber);
        }
      }
    } else {
      followers_.front()->queued = false;
      next.push_back(followers_.front()->listener);
      followers_.pop_front();
    }
  }
  return next;
}

}  // namespace distro
