// Time as a dependency: decisions take monotonic time from a Clock that a test can set.
// Thread-safe.
#pragma once

#include "absl/time/time.h"

namespace distro {

class Clock {
 public:
  virtual ~Clock() = default;
  // Time since an arbitrary origin; never goes back. Deadlines and durations are measured with it.
  virtual absl::Duration MonotonicNow() const = 0;
  // The calendar's time, for logs, metrics and a run's epoch only.
  virtual absl::Time WallNow() const = 0;

  // The machine's clock; never destroyed, not owned by the caller.
  static Clock* Real();
};

}  // namespace distro
