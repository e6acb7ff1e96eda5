// Calls a callback at the first signal that asks for an orderly end: SIGINT, SIGTERM, SIGHUP (a
// closed terminal) or SIGXCPU (the limit of CPU time). Then the next SIGINT or SIGTERM ends the
// process at once with 128 + its number, even while the callback runs, and also as a container's
// first process. Further SIGHUP and SIGXCPU change nothing: a shell repeats the one of its
// terminal, and the kernel repeats the other every second. Where SIGHUP was ignored at the start,
// as nohup does, it stays ignored. Create it before any other thread, so that all threads inherit
// the blocked signals; at most one may exist.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace distro {

class StopSignal {
 public:
  // `on_hang_up` is called at each SIGHUP, in the signal thread; such a process goes on.
  explicit StopSignal(std::function<void()> on_hang_up = nullptr);
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
  void Take(int number);

  const std::function<void()> on_hang_up_;
  sigset_t signals_;
  int signal_fd_ = -1;
  int over_fd_ = -1;
  std::atomic<int> signal_ = 0;
  absl::Mutex mu_;
  std::function<void()> on_stop_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace distro
