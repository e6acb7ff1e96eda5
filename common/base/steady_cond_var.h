// A condition variable for absl::Mutex whose waits are measured by the monotonic clock. Those of
// absl (release 20220623) end at a time of the calendar: when the clock is set back by an hour they
// take an hour longer, and when it is set forward they end at once. Thread-safe.
//
//   absl::MutexLock lock(&mu_);
//   if (changed_.WaitFor(&mu_, absl::Seconds(5), [this] { return done_; })) ...
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace distro {

class SteadyCondVar {
 public:
  // Waits until `done()`, which is called with `mu` held, at most for `timeout`. Returns what it
  // said last. Releases `mu` meanwhile.
  template <typename Done>
  bool WaitFor(absl::Mutex* mu, absl::Duration timeout, const Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const std::chrono::steady_clock::time_point end = EndOf(timeout);
    bool in_time = true;
    while (!done()) {
      if (!in_time) return false;
      in_time = WaitOnce(mu, end);
    }
    return true;
  }
  // To be called after what `done` looks at has changed, with the mutex held or not.
  void SignalAll();

 private:
  static std::chrono::steady_clock::time_point EndOf(absl::Duration timeout);
  // False: not before `end`. Also returns without a signal.
  bool WaitOnce(absl::Mutex* mu, std::chrono::steady_clock::time_point end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  std::mutex mu_;  // locked after the caller's
  std::condition_variable signaled_;
};

// An event that happens once. May be destroyed as soon as WaitFor has returned true.
class SteadyNotification {
 public:
  void Notify();
  // Waits for it, at most for `timeout`: whether it has happened.
  bool WaitFor(absl::Duration timeout);

 private:
  absl::Mutex mu_;
  SteadyCondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace distro
