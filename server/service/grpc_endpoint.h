// The gRPC side of an aggregator: its services, on connections that the acceptor lets in.
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
#include "server/limits/stream_gate.h"
#include "server/options/options.h"
#include "server/round/run_host.h"
#include "server/service/call_desk.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// What the services act on and tell; all borrowed.
struct GrpcSources {
  RunHost* host = nullptr;
  ServerTls* tls = nullptr;  // null: insecure
  Authorizer* authorizer = nullptr;
  const CallDesk* desk = nullptr;
  StreamGate* gate = nullptr;
  TransferObserver* transfers = nullptr;
  CallObserver* calls = nullptr;
  WorkerReports* reports = nullptr;
  const Clock* clock = nullptr;
  Log* log = nullptr;
};

class GrpcEndpoint {
 public:
  // Listens on --listen and serves. `on_dead` is called, once or more often, by another thread,
  // when no connections are accepted any more. Unavailable: the address is in use, or not of this
  // machine. InvalidArgument: its host names nothing, or the process may have too few files open.
  static absl::StatusOr<std::unique_ptr<GrpcEndpoint>> Start(
      const AggregatorOptions& options, const GrpcSources& sources,
      std::function<void(absl::Status)> on_dead);
  // Stop().
  ~GrpcEndpoint();

  // "host:port" as bound.
  const std::string& address() const;
  // Connections are accepted.
  bool accepting() const;
  // Accepts nobody any more; open calls get two seconds. The rest may still be asked. Again:
  // nothing happens.
  void Stop();
  // From now on the health service says NOT_SERVING, and that nobody is accepted is no failure.
  void SayNotServing();

 private:
  struct Parts;
  explicit GrpcEndpoint(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

// Process-wide, for main functions: from now on gRPC's own lines on standard error are at most 20 a
// minute: it writes one for every handshake that fails and every message that it refuses, and
// strangers make as many of those as they like.
void LimitGrpcLog();

}  // namespace distro::server
