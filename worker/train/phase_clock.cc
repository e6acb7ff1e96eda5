#include "worker/train/phase_clock.h"

namespace distro::worker {

absl::string_view PhaseName(Phase phase) {
  constexpr absl::string_view kNames[kPhases] = {"idle", "data",  "forward_backward", "compress",
                                                 "wait", "apply", "evaluate",         "checkpoint"};
  return kNames[static_cast<int>(phase)];
}

Phase PhaseClock::Switch(Phase phase) {
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_->MonotonicNow();
  spent_[static_cast<int>(phase_)] += now - since_;
  since_ = now;
  return std::exchange(phase_, phase);
}

absl::Duration PhaseClock::Spent(Phase phase) const {
  absl::MutexLock lock(&mu_);
  const absl::Duration running =
      phase == phase_ ? clock_->MonotonicNow() - since_ : absl::ZeroDuration();
  return spent_[static_cast<int>(phase)] + running;
}

std::array<absl::Duration, kPhases> PhaseClock::Spent() const {
  absl::MutexLock lock(&mu_);
  std::array<absl::Duration, kPhases> spent = spent_;
  spent[static_cast<int>(phase_)] += clock_->MonotonicNow() - since_;
  return spent;
}

absl::Duration PhaseClock::Total() const { return clock_->MonotonicNow() - start_; }

}  // namespace distro::worker
