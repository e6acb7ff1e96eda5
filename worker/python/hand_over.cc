#include "worker/python/hand_over.h"

#include <utility>

namespace distro::worker {

bool HandOver::IsWanted(Request::Kind kind) const {
  return !abandoned_ && (!closed_ || kind == Request::Kind::kSave);
}

absl::StatusOr<Answer> HandOver::Ask(Request request) {
  const absl::MutexLock lock(&mu_);
  const Request::Kind kind = request.kind;
  if (IsWanted(kind)) asked_ = std::move(request);
  answer_.reset();
  changed_.SignalAll();
  changed_.WaitFor(&mu_, absl::InfiniteDuration(), [&] {
    mu_.AssertHeld();
    return answer_.has_value() || !IsWanted(kind);
  });
  asked_.reset();
  if (answer_.has_value()) return *std::exchange(answer_, std::nullopt);
  return absl::CancelledError("the program computes no more");
}

void HandOver::End(absl::Status status) {
  const absl::MutexLock lock(&mu_);
  if (!ended_) end_status_ = std::move(status);
  ended_ = true;
  changed_.SignalAll();
}

std::optional<Request> HandOver::Wait(absl::Duration timeout) {
  const absl::MutexLock lock(&mu_);
  const auto told = [this] {
    mu_.AssertHeld();
    return asked_.has_value() || ended_;
  };
  if (!changed_.WaitFor(&mu_, timeout, told)) return std::nullopt;
  return asked_.has_value() ? asked_ : Request();
}

absl::Status HandOver::Reply(const Answer& answer) {
  const absl::MutexLock lock(&mu_);
  if (!asked_.has_value()) return absl::FailedPreconditionError("nothing is asked");
  asked_.reset();
  answer_ = answer;
  changed_.SignalAll();
  return absl::OkStatus();
}

void HandOver::Close(const Answer& so_far) {
  const absl::MutexLock lock(&mu_);
  closed_ = true;
  if (asked_.has_value() && asked_->kind == Request::Kind::kRound && so_far.skipped < so_far.steps)
    answer_ = so_far;
  if (asked_.has_value() && !IsWanted(asked_->kind)) asked_.reset();
  changed_.SignalAll();
}

void HandOver::Abandon() {
  const absl::MutexLock lock(&mu_);
  abandoned_ = true;
  asked_.reset();
  changed_.SignalAll();
}

absl::Status HandOver::end_status() const {
  const absl::MutexLock lock(&mu_);
  return end_status_;
}

}  // namespace distro::worker
