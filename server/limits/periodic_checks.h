// A thread that periodically calls StreamLimiter::StopStalled, and `look` for other checks that are
// needed at least every second. The limiter's clock decides which streams have stalled.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "common/base/steady_cond_var.h"
#include "server/limits/stream_limiter.h"

namespace distro::server {

class PeriodicChecks {
 public:
  // `limiter` is borrowed.
  PeriodicChecks(StreamLimiter* limiter, std::function<void()> look)
      : limiter_(limiter), look_(std::move(look)), thread_([this] { Run(); }) {}
  ~PeriodicChecks() {
    stop_.Notify();
    thread_.join();
  }
  PeriodicChecks(const PeriodicChecks&) = delete;
  PeriodicChecks& operator=(const PeriodicChecks&) = delete;

 private:
  void Run() {
    const absl::Duration period =
        std::clamp(limiter_->limits().stall_timeout / 16, absl::Milliseconds(25), absl::Seconds(1));
    while (!stop_.WaitFor(period)) {
      limiter_->StopStalled();
      look_();
    }
  }

  StreamLimiter* const limiter_;
  const std::function<void()> look_;
  SteadyNotification stop_;
  std::thread thread_;
};

}  // namespace distro::server
