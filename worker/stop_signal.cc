#include "worker/stop_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace distro::worker {
namespace {

// Ends the signal thread; never sent from outside on purpose.
constexpr int kQuit = SIGUSR1;

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, kQuit}) sigaddset(&set, number);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { Wait(); });
}

StopSignal::~StopSignal() {
  pthread_kill(thread_.native_handle(), kQuit);
  thread_.join();
}

void StopSignal::SetHandler(std::function<void()> on_stop) {
  absl::MutexLock lock(&mu_);
  on_stop_ = std::move(on_stop);
  if (on_stop_ && signal_.load() != 0) on_stop_();
}

void StopSignal::Wait() {
  const sigset_t set = Signals();
  while (true) {
    int number = 0;
    sigwait(&set, &number);
    if (number == kQuit) return;
    if (signal_.load() != 0) _exit(128 + number);
    absl::MutexLock lock(&mu_);
    signal_.store(number);
    if (on_stop_) on_stop_();
  }
}

}  // namespace distro::worker
