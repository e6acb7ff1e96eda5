#include "common/base/steady_cond_var.h"

#include <algorithm>

namespace distro {

std::chrono::steady_clock::time_point SteadyCondVar::EndOf(absl::Duration timeout) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 3650);
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::clamp(timeout, absl::ZeroDuration(), kLongest));
}

bool SteadyCondVar::WaitOnce(absl::Mutex* mu, std::chrono::steady_clock::time_point end) {
  // Who changes something holds the caller's mutex, and can signal only once this one waits.
  std::unique_lock<std::mutex> lock(mu_);
  mu->Unlock();
  const bool in_time = signaled_.wait_until(lock, end) == std::cv_status::no_timeout;
  lock.unlock();
  mu->Lock();
  return in_time;
}

void SteadyCondVar::SignalAll() {
  const std::lock_guard<std::mutex> lock(mu_);
  signaled_.notify_all();
}

void SteadyNotification::Notify() {
  absl::MutexLock lock(&mu_);
  notified_ = true;
  changed_.SignalAll();
}

bool SteadyNotification::WaitFor(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  return changed_.WaitFor(&mu_, timeout, [this] {
    mu_.AssertHeld();
    return notified_;
  });
}

}  // namespace distro
