// A thread that periodically calls StreamLimiter::StopStalled, and `look` for other checks that are
// needed at least every second. The limiter's clock decides which streams have stalled.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/steady_cond_var.h"
#include "server/limits/stream_limiter.h"

namespace distro::server {

class PeriodicChecks {
 public:
  // `limiter` is borrowed.
  PeriodicChecks(StreamLimiter* limiter, std::function<void()> look)
      : limiter_(limiter), look_(std::move(look)), thread_([this] { Run(); }) {}
  ~PeriodicChecks() {
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }
  PeriodicChecks(const PeriodicChecks&) = delete;
  PeriodicChecks& operator=(const PeriodicChecks&) = delete;

 private:
  void Run() {
    const absl::Duration period =
        std::clamp(limiter_->limits().stall_timeout / 16, absl::Milliseconds(25), absl::Seconds(1));
    while (!Stopped(period)) {
      limiter_->StopStalled();
      look_();
    }
  }
  bool Stopped(absl::Duration within) {
    absl::MutexLock lock(&mu_);
    return changed_.WaitFor(&mu_, within, [this] {
      mu_.AssertHeld();
      return stop_;
    });
  }

  StreamLimiter* const limiter_;
  const std::function<void()> look_;
  absl::Mutex mu_;
  SteadyCondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace distro::server
