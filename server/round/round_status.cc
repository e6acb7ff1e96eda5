// RoundManager: what it says of itself, and how it ends.
#include <algorithm>

#include "common/base/reason.h"
#include "server/round/round_manager.h"

namespace distro::server {
namespace {

absl::Status Draining() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "draining",
                         "the aggregator is about to stop: try again later");
}

}  // namespace

// The hint: after what is left of the grace somebody else may answer here.
absl::Status RoundManager::DrainingError() const {
  const absl::Duration left = drain_ends_.value_or(absl::ZeroDuration()) - clock_->MonotonicNow();
  return WithRetryAfter(Draining(), std::max(left, absl::Seconds(1)));
}

void RoundManager::Drain() {
  absl::MutexLock lock(&mu_);
  if (drain_ends_) return;
  drain_ends_ = clock_->MonotonicNow() + options_.drain_grace;
  log_->Info("draining", {{"round", head_.value()},
                          {"open", round_ ? "yes" : "no"},
                          {"grace", absl::FormatDuration(options_.drain_grace)}});
  Poke();
}

bool RoundManager::draining() const {
  absl::MutexLock lock(&mu_);
  return drain_ends_.has_value();
}

void RoundManager::Stop() {
  {
    absl::MutexLock lock(&mu_);
    if (!drain_ends_) drain_ends_ = clock_->MonotonicNow();
  }
  EndNow();
}

void RoundManager::EndNow() {
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    Poke();
  }
  broadcast_.End(Draining());
}

void RoundManager::AwaitDrained(absl::Duration timeout) const {
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&ended_), timeout);
}

v1::RunState RoundManager::VisibleState() const {
  return drain_ends_ ? v1::RUN_STATE_DRAINING : state_;
}

RunStatus RoundManager::status() const {
  absl::MutexLock lock(&mu_);
  RunStatus status{.state = VisibleState(),
                   .reason = reason_,
                   .epoch = epoch_,
                   .round = head_,
                   .log_hash = round_log_->has_start() ? round_log_->HashBefore(head_) : 0,
                   .disk_error = disk_error_,
                   .mismatch = mismatch_,
                   .deadline = deadline_,
                   .workers = {},
                   .agreement = {},
                   .since = {},
                   .now = clock_->MonotonicNow()};
  for (const auto& [name, worker] : membership_.workers()) {
    status.workers.push_back(worker);
    status.agreement.push_back(agreement_.Of(name).Score());
    const auto since = state_since_.find(name);
    status.since.push_back(since == state_since_.end() ? started_at_ : since->second);
  }
  return status;
}

uint64_t RoundManager::DamagedRecordCount() const {
  return damaged_.Count([this](RoundId round) { return !round_log_->pruned(round); });
}

}  // namespace distro::server
