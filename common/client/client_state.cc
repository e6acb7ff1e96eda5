#include "common/client/client_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/epoch.h"
#include "common/base/reason.h"

namespace distro {

absl::Status CheckEpoch(EpochId epoch, EpochId newest, absl::Time now) {
  if (NewestEpoch(newest, epoch, now) == epoch) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, "fenced",
      absl::StrCat("the aggregator that answers has epoch ", epoch.value(), ", and one of epoch ",
                   newest.value(), " has replaced it: stop the older one"));
}

std::string ReasonToReopen(const ClientView& view, absl::Duration now, absl::Duration patience) {
  if (!view.subscribed || view.delivering || now - view.last_frame < patience) return "";
  if (view.subscription_epoch < view.epoch) {
    return absl::StrCat("its frames are of epoch ", view.subscription_epoch.value(),
                        ", and the aggregator has restarted with epoch ", view.epoch.value());
  }
  if (view.next_round < view.head) {
    return absl::StrCat("no frame of round ", view.next_round.value(),
                        " comes, and the aggregator is at round ", view.head.value());
  }
  return "";
}

ClientState::ClientState(EpochId epoch, RoundId head) {
  view_.epoch = epoch;
  view_.head = head;
}

ClientView ClientState::view() const {
  absl::MutexLock lock(&mu_);
  return view_;
}

void ClientState::Update(const std::function<void(ClientView&)>& change) {
  absl::MutexLock lock(&mu_);
  change(view_);
  Changed();
}

void ClientState::ObserveEpoch(EpochId epoch) {
  absl::MutexLock lock(&mu_);
  const EpochId newest = NewestEpoch(view_.epoch, epoch, absl::Now());
  if (newest == view_.epoch) return;
  view_.epoch = newest;
  Changed();
}

void ClientState::ObserveFrame(EpochId epoch, absl::Duration now) {
  {
    absl::MutexLock lock(&mu_);
    view_.last_frame = now;
    view_.subscription_epoch = epoch;
  }
  ObserveEpoch(epoch);
}

void ClientState::ObserveHead(EpochId epoch, RoundId head) {
  absl::MutexLock lock(&mu_);
  const EpochId newest = NewestEpoch(view_.epoch, epoch, absl::Now());
  if (!view_.head_wanted && newest == view_.epoch && head == view_.head) return;
  view_.head_wanted = false;
  view_.epoch = newest;
  view_.head = head;
  Changed();
}

void ClientState::WantHead() {
  Update([](ClientView& view) { view.head_wanted = true; });
}

std::string ClientState::ReopenIfSilent(absl::Duration now, absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  std::string reason = ReasonToReopen(view_, now, patience);
  if (reason.empty()) return reason;
  ++view_.reopens;
  Changed();
  return reason;
}

bool ClientState::Await(absl::Duration timeout,
                        absl::FunctionRef<bool(const ClientView&)> done) const {
  absl::MutexLock lock(&mu_);
  changed_.WaitFor(&mu_, timeout, [&] {
    mu_.AssertHeld();
    return ended_ || done(view_);
  });
  return !ended_;
}

bool ClientState::AwaitChange(uint64_t seen, absl::Duration timeout) const {
  return Await(timeout, [&](const ClientView& view) { return view.version != seen; });
}

bool ClientState::Sleep(absl::Duration duration) const {
  return Await(duration, [](const ClientView& /*view*/) { return false; });
}

bool ClientState::SleepUnlessNews(absl::Duration duration, const ClientView& start) const {
  return Await(duration, [&](const ClientView& view) {
    return view.returns != start.returns || view.reopens != start.reopens;
  });
}

void ClientState::End(absl::Status status) {
  absl::MutexLock lock(&mu_);
  if (ended_) return;
  ended_ = true;
  end_status_ = std::move(status);
  ++view_.version;
  for (ClientCall* call : calls_) call->context_.TryCancel();
  changed_.SignalAll();
}

bool ClientState::ended() const {
  absl::MutexLock lock(&mu_);
  return ended_;
}

absl::Status ClientState::end_status() const {
  absl::MutexLock lock(&mu_);
  return end_status_;
}

void ClientState::Changed() {
  ++view_.version;
  changed_.SignalAll();
  for (ClientCall* call : calls_) {
    if (call->still_wanted_ && !call->still_wanted_(view_)) call->context_.TryCancel();
  }
}

ClientCall::ClientCall(ClientState* state, StillWanted still_wanted)
    : state_(state), still_wanted_(std::move(still_wanted)) {
  absl::MutexLock lock(&state_->mu_);
  state_->calls_.insert(this);
  if (state_->ended_ || (still_wanted_ && !still_wanted_(state_->view_))) context_.TryCancel();
}

ClientCall::~ClientCall() {
  absl::MutexLock lock(&state_->mu_);
  state_->calls_.erase(this);
}

}  // namespace distro
