// A thread that periodically calls StreamGate::Sweep, and `look` for other checks that are needed
// at least every second. The gate's clock decides which streams have stalled.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/stream_gate.h"

namespace distro::server {

class Sweeper {
 public:
  // `gate` is borrowed.
  Sweeper(StreamGate* gate, std::function<void()> look)
      : gate_(gate), look_(std::move(look)), thread_([this] { Run(); }) {}
  ~Sweeper() {
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
    }
    thread_.join();
  }
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

 private:
  void Run() {
    const absl::Duration period =
        std::clamp(gate_->limits().stall_timeout / 16, absl::Milliseconds(25), absl::Seconds(1));
    while (!Stopped(period)) {
      gate_->Sweep();
      look_();
    }
  }
  bool Stopped(absl::Duration within) {
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&stop_), within);
  }

  StreamGate* const gate_;
  const std::function<void()> look_;
  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace distro::server
