// Runs an aggregator in this process: data folder, run, gRPC and HTTP servers. A process may have
// several (port 0). Thread-safe.
//
//   auto server = AggregatorServer::Start(options, Clock::Real(), &log, on_fatal);
//   ...                       // serves until a signal
//   (*server)->Drain();
//   (*server)->AwaitDrained();
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/log/disk.h"
#include "server/options/options.h"

namespace distro::server {

class AggregatorServer {
 public:
  // Locks the data folder, creates or continues the run, and listens. `clock`, `log` and `disk` are
  // borrowed. `on_fatal` is called at most once, from another thread, when the rounds had to stop:
  // the process should exit with that status. FailedPrecondition: the folder belongs to another
  // process or run. DataLoss: stored data is damaged. InvalidArgument: the run or the model is
  // refused. Unavailable: an address is in use, or (reason "disk") the bucket of log_url cannot be
  // used now. While it waits for that it asks `cancelled`.
  static absl::StatusOr<std::unique_ptr<AggregatorServer>> Start(
      const AggregatorOptions& options, const Clock* clock, Log* log,
      std::function<void(absl::Status)> on_fatal, Disk* disk = Disk::Real(),
      std::function<bool()> cancelled = nullptr);
  // Stops at once, without waiting for an open round.
  ~AggregatorServer();

  // Starts a drain: health and /readyz report it, workers are told, nobody new may join, and the
  // open round continues.
  void Drain();
  // Blocks until the open round has ended, its deadline has passed or --drain_grace is over.
  void AwaitDrained() const;

  // "host:port" as bound.
  const std::string& grpc_address() const;
  const std::string& http_address() const;
  const std::string& objects_address() const;  // empty: no objects are served

 private:
  struct Impl;
  explicit AggregatorServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace distro::server
