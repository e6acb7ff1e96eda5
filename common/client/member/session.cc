#include "common/client/member/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro {
namespace {

absl::Status OtherRunError(absl::string_view message) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run", message);
}

}  // namespace

absl::Status FencedError(EpochId epoch, EpochId newest) {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "fenced",
                         absl::StrCat("an answer of epoch ", epoch.value(),
                                      " while the aggregator's is ", newest.value()));
}

std::string ReasonToReopen(const SessionView& view, absl::Duration now, absl::Duration patience) {
  if (!view.subscribed || view.delivering || now - view.last_frame < patience) return "";
  if (view.subscription_epoch < view.epoch) {
    return absl::StrCat("frames are of epoch ", view.subscription_epoch.value(),
                        ", the aggregator's is ", view.epoch.value());
  }
  if (view.next_round < view.head) {
    return absl::StrCat("round ", view.next_round.value(),
                        " is awaited, the aggregator is at round ", view.head.value());
  }
  return "";
}

Session::Session(v1::JoinRequest request, const v1::JoinResponse& response)
    : request_(std::move(request)),
      rounds_(response.config().rounds()),
      manifest_hash_(response.manifest_hash()),
      segment_blocks_(response.config().segment_blocks()) {
  if (!response.run_id().empty()) request_.set_run_id(response.run_id());
  view_.epoch = EpochId(response.epoch());
  view_.head = RoundId(response.head_round());
}

v1::JoinRequest Session::RejoinRequest() const {
  v1::JoinRequest request = request_;
  request.set_epoch(view().epoch.value());
  return request;
}

SessionView Session::view() const {
  absl::MutexLock lock(&mu_);
  return view_;
}

absl::Status Session::CheckSameRun(const v1::JoinResponse& response) const {
  if (response.run_id() != run_id()) {
    return OtherRunError(absl::StrCat("the aggregator has run ", response.run_id(),
                                      " now, this worker has state of run ", run_id()));
  }
  if (response.manifest_hash() != manifest_hash_) {
    return OtherRunError(absl::StrCat(
        "run ", response.run_id(), ": manifest ", absl::BytesToHexString(response.manifest_hash()),
        " differs from ", absl::BytesToHexString(manifest_hash_), " at the first Join"));
  }
  if (response.config().segment_blocks() != segment_blocks_ ||
      response.config().rounds() != rounds_.value()) {
    return OtherRunError(absl::StrCat("run ", response.run_id(),
                                      ": segment_blocks or rounds changed since the first Join"));
  }
  return absl::OkStatus();
}

void Session::Update(const std::function<void(SessionView&)>& change) {
  absl::MutexLock lock(&mu_);
  change(view_);
  Changed();
}

void Session::ObserveEpoch(EpochId epoch) {
  absl::MutexLock lock(&mu_);
  if (epoch <= view_.epoch) return;
  view_.epoch = epoch;
  Changed();
}

void Session::ObserveFrame(EpochId epoch, absl::Duration now) {
  {
    absl::MutexLock lock(&mu_);
    view_.last_frame = now;
    view_.subscription_epoch = epoch;
  }
  ObserveEpoch(epoch);
}

void Session::ObserveHeartbeat(const v1::HeartbeatResponse& response) {
  const EpochId epoch(response.epoch());
  const RoundId head(response.head_round());
  absl::MutexLock lock(&mu_);
  if (!view_.heartbeat_wanted && epoch <= view_.epoch && head == view_.head) return;
  view_.heartbeat_wanted = false;
  view_.epoch = std::max(view_.epoch, epoch);
  view_.head = head;
  Changed();
}

void Session::WantHeartbeat() {
  Update([](SessionView& view) { view.heartbeat_wanted = true; });
}

bool Session::AwaitChange(uint64_t seen, absl::Duration timeout) const {
  const absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(&mu_);
  while (!ended_ && view_.version == seen) {
    if (changed_.WaitWithDeadline(&mu_, deadline)) break;
  }
  return !ended_;
}

bool Session::Sleep(absl::Duration duration) const {
  const absl::Time deadline = absl::Now() + duration;
  absl::MutexLock lock(&mu_);
  while (!ended_) {
    if (changed_.WaitWithDeadline(&mu_, deadline)) break;
  }
  return !ended_;
}

bool Session::SleepUnlessBack(absl::Duration duration, uint64_t returns) const {
  const absl::Time deadline = absl::Now() + duration;
  absl::MutexLock lock(&mu_);
  while (!ended_ && view_.returns == returns) {
    if (changed_.WaitWithDeadline(&mu_, deadline)) break;
  }
  return !ended_;
}

void Session::End(absl::Status status) {
  absl::MutexLock lock(&mu_);
  if (ended_) return;
  ended_ = true;
  end_status_ = std::move(status);
  ++view_.version;
  for (SessionCall* call : calls_) call->context_.TryCancel();
  changed_.SignalAll();
}

bool Session::ended() const {
  absl::MutexLock lock(&mu_);
  return ended_;
}

absl::Status Session::end_status() const {
  absl::MutexLock lock(&mu_);
  return end_status_;
}

void Session::Changed() {
  ++view_.version;
  changed_.SignalAll();
  for (SessionCall* call : calls_) {
    if (call->still_wanted_ && !call->still_wanted_(view_)) call->context_.TryCancel();
  }
}

SessionCall::SessionCall(Session* session, StillWanted still_wanted)
    : session_(session), still_wanted_(std::move(still_wanted)) {
  absl::MutexLock lock(&session_->mu_);
  session_->calls_.insert(this);
  if (session_->ended_ || (still_wanted_ && !still_wanted_(session_->view_))) context_.TryCancel();
}

SessionCall::~SessionCall() {
  absl::MutexLock lock(&session_->mu_);
  session_->calls_.erase(this);
}

}  // namespace distro
