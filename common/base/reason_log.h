// Logs repeated failures: one line when the reason changes, at most one every few seconds, and
// optionally a reminder. An aggregator that is unreachable for an hour costs a handful of lines.
// Thread-safe.
//
//   ReasonLog log("cannot reach the aggregator", &process_log, Clock::Real());
//   log.Failed(status.message());        // after each failed attempt
//   log.Succeeded("aggregator reached");  // logged only if a failure was
#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"

namespace distro {

class ReasonLog {
 public:
  // `event` names what fails; `log` and `clock` are borrowed. The same reason is logged again after
  // `remind_every`.
  ReasonLog(std::string event, Log* log, const Clock* clock,
            absl::Duration remind_every = absl::InfiniteDuration())
      : event_(std::move(event)), log_(log), clock_(clock), remind_every_(remind_every) {}

  // Reports a failure.
  void Failed(absl::string_view reason) {
    absl::MutexLock lock(&mu_);
    const absl::Duration now = clock_->MonotonicNow();
    const absl::Duration quiet = reason == reason_ ? remind_every_ : kQuiet;
    if (!reason_.empty() && now - logged_ < quiet) return;
    reason_ = std::string(reason);
    logged_ = now;
    log_->Warning(event_, {{"reason", reason}});
  }

  // Reports a success; logs `event` if a failure was logged before.
  void Succeeded(absl::string_view event) {
    absl::MutexLock lock(&mu_);
    if (reason_.empty()) return;
    reason_.clear();
    log_->Info(event);
  }

 private:
  static constexpr absl::Duration kQuiet = absl::Seconds(3);

  // Constant after construction.
  const std::string event_;
  Log* const log_;
  const Clock* const clock_;
  const absl::Duration remind_every_;

  absl::Mutex mu_;
  std::string reason_ ABSL_GUARDED_BY(mu_);
  absl::Duration logged_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
