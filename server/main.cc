// distro-aggregator: see flags.cc, or --help.
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "google/protobuf/stubs/logging.h"
#include "server/aggregator_server.h"
#include "server/connections/connection_limits.h"
#include "server/options/flags.h"
#include "server/service/grpc_endpoint.h"

namespace distro::server {
namespace {

// Waits for the reason to exit: the first signal, or a failure of the rounds. A second signal ends
// the process at once, even while the server starts, which takes minutes for a large folder. Create
// it before any other thread, so that threads inherit the blocked signals.
class EndOfProcess {
 public:
  EndOfProcess() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal_fd_ = signalfd(-1, &signals_, SFD_CLOEXEC);
    over_fd_ = eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { Watch(); });
  }
  ~EndOfProcess() {
    const uint64_t one = 1;
    (void)!write(over_fd_, &one, sizeof(one));
    thread_.join();
    close(signal_fd_);
    close(over_fd_);
  }

  void Fail(absl::Status status) {
    absl::MutexLock lock(&mu_);
    failure_ = std::move(status);
    ended_ = true;
  }

  // Blocks. Afterwards the next signal ends the process at once.
  absl::Status Wait() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&ended_));
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    return failure_;
  }

  // OK if nothing has failed so far.
  absl::Status failure() {
    absl::MutexLock lock(&mu_);
    return failure_;
  }

 private:
  static void Poll(pollfd* events, nfds_t count) {
    while (poll(events, count, -1) < 0 && errno == EINTR) {
    }
  }
  void Watch() {
    pollfd events[] = {{signal_fd_, POLLIN, 0}, {over_fd_, POLLIN, 0}};
    Poll(events, 2);
    if (events[0].revents == 0) return;
    signalfd_siginfo info;  // removed from the queue, so that unblocking does not deliver it
    (void)!read(signal_fd_, &info, sizeof(info));
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    {
      absl::MutexLock lock(&mu_);
      ended_ = true;
    }
    Poll(events + 1, 1);
  }

  sigset_t signals_;
  int signal_fd_;
  int over_fd_;
  absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

absl::StatusOr<int> Run(const AggregatorOptions& options) {
  EndOfProcess end;
  Log log(options.log_level);
  log.Info("starting", {{"data_dir", options.data_dir},
                        {"listen", options.listen},
                        {"http", options.http},
                        {"heartbeat_interval", absl::FormatDuration(options.heartbeat_interval)},
                        {"suspect_after", absl::FormatDuration(options.SuspectAfter())},
                        {"lease", absl::FormatDuration(options.lease)},
                        {"drain_grace", absl::FormatDuration(options.drain_grace)}});
  DISTRO_ASSIGN_OR_RETURN(
      auto server, AggregatorServer::Start(options, Clock::Real(), &log,
                                           [&end](absl::Status s) { end.Fail(std::move(s)); }));
  absl::Status ended = end.Wait();
  log.Info("stopping", {{"reason", ended.ok() ? "signal" : ended.ToString()}});
  if (ended.ok()) {
    server->Drain();
    server->AwaitDrained();
    ended = end.failure();
  }
  server.reset();
  log.Info("stopped");
  if (!ended.ok()) return ended;
  return 0;
}

int Main(int argc, char** argv) {
  // Otherwise protobuf would print a line for each invalid message of a peer; we count those.
  google::protobuf::SetLogHandler(nullptr);
  LimitGrpcLog();
  RaiseOpenFiles();  // before the options, whose limits depend on it
  AggregatorOptions options;
  return RunProgram(AggregatorProgram(&options, [&options] { return Run(options); }), argc, argv);
}

}  // namespace
}  // namespace distro::server

int main(int argc, char** argv) { return distro::server::Main(argc, argv); }
