// SIGINT and SIGTERM as a callback: the first asks for an orderly end, the second ends the process
// at once with 128 + its number, also while the callback runs. Made before any other thread, so
// that all of them inherit the blocked signals; one at a time.
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

  // Calls `on_stop` in the signal thread at the first signal, or here and at once if it has come
  // already. nullptr unregisters; when that returns, no call is running. `on_stop` must not call
  // back.
  void SetHandler(std::function<void()> on_stop);

  // The signal that came, or 0.
  int signal() const { return signal_.load(); }

 private:
  void Wait();

  std::atomic<int> signal_ = 0;
  absl::Mutex mu_;
  std::function<void()> on_stop_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace distro
