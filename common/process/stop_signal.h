// Calls a callback on SIGINT or SIGTERM: the first signal requests an orderly end, the second ends
// the process at once with 128 + its number, even while the callback runs. Create it before any
// other thread, so that all threads inherit the blocked signals; at most one may exist.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace distro {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Calls `on_stop` in the signal thread at the first signal, or immediately if it has already
  // arrived. nullptr unregisters; when that returns, no call is running. `on_stop` must not call
  // SetHandler.
  void SetHandler(std::function<void()> on_stop);

  // The received signal, or 0.
  int signal() const { return signal_.load(); }

 private:
  void Wait();

  std::atomic<int> signal_ = 0;
  absl::Mutex mu_;
  std::function<void()> on_stop_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace distro
