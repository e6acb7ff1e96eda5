#include "server/round/control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro::server {
namespace {

absl::Status NotNow(absl::string_view reason, RoundId head, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kUnavailable, reason,
                         absl::StrCat("round ", head.value(), ": ", why));
}

}  // namespace

absl::Status Draining() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "draining",
                         "the aggregator is about to stop: try again later");
}

void Control::Set(v1::RunState state, std::string reason) {
  if (state_ == state && reason_ == reason) return;
  const bool news = state_ != state || state == v1::RUN_STATE_WAITING;
  state_ = state;
  reason_ = std::move(reason);
  if (!news) return;
  log_->Info("run", {{"state", v1::RunState_Name(state)},
                     {"round", position_->head().value()},
                     {"reason", reason_}});
}

void Control::Extended(uint64_t rounds) {
  log_->Info("extended", {{"round", position_->head().value()}, {"rounds", rounds}});
  if (state_ == v1::RUN_STATE_DONE)
    Set(v1::RUN_STATE_WAITING, absl::StrCat("extended to ", rounds, " rounds"));
  ShowPause();
}

void Control::Restore(const v1::StoredAdmission& decided) {
  paused_ = decided.paused();
  pause_reason_ = decided.pause_reason();
  ShowPause();
}

void Control::Pause(const std::string& reason) {
  paused_ = true;
  pause_reason_ = reason;
  log_->Info("paused", {{"round", position_->head().value()}, {"reason", pause_reason_}});
  ShowPause();
}

void Control::Resume() {
  if (paused_) log_->Info("resumed", {{"round", position_->head().value()}});
  paused_ = false;
  pause_reason_.clear();
  ShowPause();
}

void Control::ShowPause() {
  if (position_->round() != nullptr || state_ == v1::RUN_STATE_DONE) return;
  if (paused_) {
    Set(v1::RUN_STATE_PAUSED,
        pause_reason_.empty() ? "paused by an operator" : absl::StrCat("paused: ", pause_reason_));
  } else if (state_ == v1::RUN_STATE_PAUSED) {
    Set(v1::RUN_STATE_WAITING, "resumed");
  }
}

void Control::Drain(absl::Duration ends) {
  if (!drain_ends_) drain_ends_ = ends;
}

absl::Status Control::DrainingError(absl::Duration now) const {
  // The next aggregator listens as soon as the round is over, which may be long before the end.
  const absl::Duration left = drain_ends_.value_or(absl::ZeroDuration()) - now;
  return WithRetryAfter(Draining(), std::clamp(left, absl::Seconds(1), absl::Seconds(5)));
}

absl::Status Control::CheckOpen(absl::Duration now) const {
  if (position_->round() != nullptr) return absl::OkStatus();
  if (draining()) return DrainingError(now);
  if (paused_) return NotNow("paused", position_->head(), "does not open while the run is paused");
  return NotNow("not_open", position_->head(), "is not open yet");
}

}  // namespace distro::server
