// How much processor time somebody may have made used: a burst, and from then on a share of one
// core. Pure; the caller measures and waits. Not thread-safe.
#pragma once

#include "absl/time/time.h"

namespace distro {

class CpuBudget {
 public:
  // `share` is above 0; the burst is there at first and again after burst / share without work.
  CpuBudget(double share, absl::Duration burst) : share_(share), burst_(burst), left_(burst) {}

  void Spend(absl::Duration used) { left_ -= used; }
  // How long to wait before the next work; zero: none. `now` is Clock::MonotonicNow().
  absl::Duration WaitAt(absl::Duration now);

 private:
  const double share_;
  const absl::Duration burst_;
  absl::Duration left_;  // below zero: what was used before it was there
  absl::Duration counted_until_ = absl::InfiniteDuration();
};

}  // namespace distro
