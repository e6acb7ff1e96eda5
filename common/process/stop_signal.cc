#include "common/process/stop_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <utility>

namespace distro {
namespace {

// Ends the signal thread; sent by this process only.
constexpr int kQuit = SIGUSR1;

sigset_t SetOf(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

int AwaitSignal(const sigset_t& set) {
  int number = 0;
  sigwait(&set, &number);
  return number;
}

// Makes the next signal end the process at once.
void EndAtNextSignal() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { _exit(128 + number); };
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  const sigset_t set = SetOf({SIGINT, SIGTERM});
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = SetOf({SIGINT, SIGTERM, kQuit});
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
  const int number = AwaitSignal(SetOf({SIGINT, SIGTERM, kQuit}));
  if (number == kQuit) return;
  EndAtNextSignal();
  {
    absl::MutexLock lock(&mu_);
    signal_.store(number);
    if (on_stop_) on_stop_();
  }
  AwaitSignal(SetOf({kQuit}));
}

}  // namespace distro
