// distro-aggregator: see flags.cc, or --help.
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/process/prepare_process.h"
#include "common/base/process/stop_signal.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "google/protobuf/stubs/logging.h"
#include "server/aggregator_server.h"
#include "server/connections/connection_limits.h"
#include "server/options/flags.h"
#include "server/service/grpc_endpoint.h"
#include "server/standby/standby.h"

namespace distro::server {
namespace {

// The reason to exit: a signal, or a failure of the rounds.
class EndOfProcess {
 public:
  // OK: a signal.
  void End(absl::Status status) {
    absl::MutexLock lock(&mu_);
    signalled_ |= status.ok();
    failure_.Update(std::move(status));
  }

  // What a server has said is over with it.
  void ForgetFailure() {
    absl::MutexLock lock(&mu_);
    failure_ = absl::OkStatus();
  }

  // Blocks.
  absl::Status Wait() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &EndOfProcess::HasEnded));
    return failure_;
  }

  bool signalled() {
    absl::MutexLock lock(&mu_);
    return signalled_;
  }

  // OK if nothing has failed so far.
  absl::Status failure() {
    absl::MutexLock lock(&mu_);
    return failure_;
  }

 private:
  bool HasEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return signalled_ || !failure_.ok(); }

  absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool signalled_ ABSL_GUARDED_BY(mu_) = false;
};

// Whether one that may be a standby waits after this: another one leads, or the bucket is away.
bool WaitsAfter(const absl::Status& status, const AggregatorOptions& options) {
  const std::string reason = ReasonOf(status);
  return options.standby && (reason == "fenced" || reason == "disk");
}

// null: asked to stop before it served.
absl::StatusOr<std::unique_ptr<AggregatorServer>> StartServer(const AggregatorOptions& options,
                                                              EndOfProcess* end, Log* log) {
  const auto stopped = [end] { return end->signalled(); };
  while (true) {
    if (options.standby) {
      const absl::Status waited = WaitAsStandby(options, stopped, Clock::Real(), log);
      if (absl::IsCancelled(waited)) return nullptr;
      DISTRO_RETURN_IF_ERROR(waited);
    }
    auto server = AggregatorServer::Start(
        options, Clock::Real(), log, [end](absl::Status s) { end->End(std::move(s)); },
        Disk::Real(), stopped);
    if (!server.ok() && stopped()) return nullptr;
    if (server.ok() || !WaitsAfter(server.status(), options)) return server;
    log->Warning("standby: not taken over", {{"reason", server.status()}});
    end->ForgetFailure();
  }
}

// Serves the run until a signal or a failure; OK: a signal.
absl::Status Serve(const AggregatorOptions& options, EndOfProcess* end, Log* log) {
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<AggregatorServer> server, StartServer(options, end, log));
  if (server == nullptr) return absl::OkStatus();
  const absl::Status ended = end->Wait();
  log->Info("stopping", {{"reason", ended.ok() ? "signal" : ended.ToString()}});
  if (!ended.ok()) return ended;
  server->Drain();
  server->AwaitDrained();
  return end->failure();
}

absl::StatusOr<int> Run(const AggregatorOptions& options) {
  Log log(options.log_level);
  EndOfProcess end;
  StopSignal stop([&log] {
    log.Info("SIGHUP: goes on; certificates and tokens are read again whenever their files change");
  });
  stop.SetHandler([&end] { end.End(absl::OkStatus()); });
  log.Info("starting", {{"data_dir", options.data_dir},
                        {"log", options.log_url},
                        {"listen", options.listen},
                        {"http", options.http},
                        {"heartbeat_interval", absl::FormatDuration(options.heartbeat_interval)},
                        {"suspect_after", absl::FormatDuration(options.SuspectAfter())},
                        {"lease", absl::FormatDuration(options.lease)},
                        {"drain_grace", absl::FormatDuration(options.drain_grace)}});
  absl::Status ended = Serve(options, &end, &log);
  while (WaitsAfter(ended, options) && !end.signalled()) {
    end.ForgetFailure();
    ended = Serve(options, &end, &log);
  }
  log.Info("stopped");
  if (WaitsAfter(ended, options)) return 0;  // and was asked to stop meanwhile
  if (!ended.ok()) return ended;
  return 0;
}

int Main(int argc, char** argv) {
  PrepareProcess();  // before the options, whose limits depend on how many files may be open
  // Otherwise protobuf would print a line for each invalid message of a peer; we count those.
  google::protobuf::SetLogHandler(nullptr);
  LimitGrpcLog();
  AggregatorOptions options;
  return RunProgram(AggregatorProgram(&options, [&options] { return Run(options); }), argc, argv);
}

}  // namespace
}  // namespace distro::server

int main(int argc, char** argv) { return distro::server::Main(argc, argv); }
