#include "common/base/process/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace distro {
namespace {

sigset_t SetOf(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

// Those that stop. A shell lets the programs that a script starts with & ignore SIGINT; whoever
// sends it to one of ours wants it to end.
sigset_t TakenSignals() {
  sigset_t set = SetOf({SIGINT, SIGTERM, SIGXCPU});
  for (const int number : {SIGINT, SIGTERM, SIGXCPU}) signal(number, SIG_DFL);
  struct sigaction of_terminal = {};
  sigaction(SIGHUP, nullptr, &of_terminal);
  if (of_terminal.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

// Makes the next signal of a person end the process at once.
void EndAtNextSignal() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { _exit(128 + number); };
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  const sigset_t set = SetOf({SIGINT, SIGTERM});
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

StopSignal::StopSignal(std::function<void()> on_hang_up)
    : on_hang_up_(std::move(on_hang_up)),
      signals_(TakenSignals()),
      signal_fd_(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK)),
      over_fd_(eventfd(0, EFD_CLOEXEC)) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { Wait(); });
}

StopSignal::~StopSignal() {
  const uint64_t one = 1;
  (void)!write(over_fd_, &one, sizeof(one));
  thread_.join();
  close(signal_fd_);
  close(over_fd_);
}

void StopSignal::SetHandler(std::function<void()> on_stop) {
  absl::MutexLock lock(&mu_);
  on_stop_ = std::move(on_stop);
  if (on_stop_ && signal_.load() != 0) on_stop_();
}

void StopSignal::Wait() {
  pollfd events[] = {{signal_fd_, POLLIN, 0}, {over_fd_, POLLIN, 0}};
  while (events[1].revents == 0) {
    if (poll(events, 2, -1) < 0) continue;
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) == sizeof(info))
      Take(static_cast<int>(info.ssi_signo));
  }
}

void StopSignal::Take(int number) {
  if (number == SIGHUP && on_hang_up_) return on_hang_up_();
  if (signal_.load() != 0) return;
  EndAtNextSignal();
  absl::MutexLock lock(&mu_);
  signal_.store(number);
  if (on_stop_) on_stop_();
}

}  // namespace distro
