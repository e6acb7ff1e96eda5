// A clock that stands still until a test moves it. Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"

namespace distro::testing {

class FakeClock final : public Clock {
 public:
  absl::Duration MonotonicNow() const override {
    absl::MutexLock lock(&mu_);
    return now_;
  }
  absl::Time WallNow() const override {
    absl::MutexLock lock(&mu_);
    return absl::FromUnixSeconds(1'700'000'000) + now_ - set_back_;
  }

  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mu_);
    now_ += by;
  }
  // The time of the calendar alone.
  void SetBack(absl::Duration by) {
    absl::MutexLock lock(&mu_);
    set_back_ += by;
  }

 private:
  mutable absl::Mutex mu_;
  absl::Duration now_ ABSL_GUARDED_BY(mu_);
  absl::Duration set_back_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::testing
