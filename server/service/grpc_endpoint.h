// The gRPC server of an aggregator: its services, on connections accepted by the Acceptor.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/auth/authorizer.h"
#include "server/auth/server_tls.h"
#include "server/call/observers.h"
#include "server/limits/stream_limiter.h"
#include "server/options/options.h"
#include "server/round/run_host.h"
#include "server/service/call_checks.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// Objects that the services use; all borrowed.
struct GrpcSources {
  RunHost* host = nullptr;
  ServerTls* tls = nullptr;  // null: insecure
  Authorizer* authorizer = nullptr;
  const CallChecks* checks = nullptr;
  StreamLimiter* limiter = nullptr;
  TransferObserver* transfers = nullptr;
  CallObserver* calls = nullptr;
  WorkerReports* reports = nullptr;
  const Clock* clock = nullptr;
  Log* log = nullptr;
};

class GrpcEndpoint {
 public:
  // InvalidArgument: the process may have fewer open files than Start needs.
  static absl::Status CheckOpenFiles();
  // Listens on --listen and serves. `on_dead` is called, at least once, by another thread when
  // connections are no longer accepted. Unavailable: the address is in use, or not of this machine.
  // InvalidArgument: its host cannot be resolved.
  static absl::StatusOr<std::unique_ptr<GrpcEndpoint>> Start(
      const AggregatorOptions& options, const GrpcSources& sources,
      std::function<void(absl::Status)> on_dead);
  // Stop().
  ~GrpcEndpoint();

  // "host:port" as bound.
  const std::string& address() const;
  // Whether connections are accepted.
  bool accepting() const;
  // Stops accepting; open calls get two seconds. The other functions stay usable. Idempotent.
  void Stop();
  // Sets the health service to NOT_SERVING. From now on it is not a failure if no connections are
  // accepted.
  void SayNotServing();

 private:
  struct Impl;
  explicit GrpcEndpoint(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Limits gRPC's own log lines on standard error to 20 per minute: gRPC writes one for every failed
// handshake and every refused message, which anyone can cause. Process-wide, for main functions.
void LimitGrpcLog();

}  // namespace distro::server
