#include "common/base/process/prepare_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/exceptions.h"
#include "common/base/mapped_file.h"

namespace distro {
namespace {

// Those of gRPC, of rounds and of HTTP, on a machine of few cores.
constexpr size_t kThreadsOfAService = 24;

constexpr rlim_t kStackBytes = rlim_t{8} << 20;

// Their default is to end the process. Nothing here sends them, and nobody who does wants that:
// job schedulers announce with SIGUSR1 and SIGUSR2, and timers survive an exec.
constexpr int kIgnored[] = {SIGPIPE,   SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM,
                            SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSTKFLT};

void (*HandlerOf(int number))(int) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}

void IgnoreUnlessHandled(int number) {
  if (HandlerOf(number) == SIG_DFL) std::signal(number, SIG_IGN);
}

void PrepareSignals() {
  for (const int number : kIgnored) IgnoreUnlessHandled(number);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) IgnoreUnlessHandled(number);
  if (HandlerOf(SIGBUS) == SIG_DFL) NameTheMappedFileOnSigbus();
  if (HandlerOf(SIGCHLD) == SIG_IGN) std::signal(SIGCHLD, SIG_DFL);  // else waitpid finds no child
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Descriptors are given in order, so each one that is closed becomes the next that is opened.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)!open("/dev/null", O_RDWR);
  }
}

void RaiseLimit(__rlimit_resource_t resource, rlim_t wanted) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  (void)setrlimit(resource, &limit);
}

// The stacks of threads would have the limit's size, which may be too small for them or too large
// for the address space.
void PrepareStacks() {
  RaiseLimit(RLIMIT_STACK, kStackBytes);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

void KeepOwnFilesAccessible() {
  const mode_t mask = umask(0);
  umask(mask & ~mode_t{S_IRWXU});
}

[[noreturn]] void EndOnException() {
  const std::exception_ptr exception = std::current_exception();
  if (exception == nullptr) std::abort();
  bool lacks = false;
  std::string what = "an exception of another kind";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    const absl::Status status = ExceptionToStatus(error);
    lacks = absl::IsResourceExhausted(status);
    what = std::string(status.message());
  } catch (...) {
  }
  const std::string line =
      absl::StrCat(program_invocation_short_name, ": a thread ended: ", what, "\n");
  (void)!write(STDERR_FILENO, line.data(), line.size());
  if (lacks) _exit(1);
  std::abort();
}

}  // namespace

void PrepareProcess() {
  OpenStandardStreams();
  PrepareSignals();
  RaiseLimit(RLIMIT_NOFILE, RLIM_INFINITY);
  PrepareStacks();
  KeepOwnFilesAccessible();
  std::set_terminate(EndOnException);
}

// The threads touch no heap: the first use would give each of them an arena of its own.
absl::Status CheckThreadsCanStart() {
  const auto wait = [](void* mutex) -> void* {
    static_cast<std::mutex*>(mutex)->lock();
    static_cast<std::mutex*>(mutex)->unlock();
    return nullptr;
  };
  std::mutex all_started;
  std::vector<pthread_t> threads;
  int error = 0;
  all_started.lock();
  while (error == 0 && threads.size() < kThreadsOfAService) {
    pthread_t thread;
    error = pthread_create(&thread, nullptr, wait, &all_started);
    if (error == 0) threads.push_back(thread);
  }
  all_started.unlock();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (error == 0) return absl::OkStatus();
  return ExceptionToStatus(std::system_error(error, std::generic_category()));
}

}  // namespace distro
