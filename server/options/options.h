// The validated options of an aggregator process. Defaults of flags are here; those of
// limits are in server/limits/service_limits.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "server/connections/connection_limits.h"
#include "server/limits/service_limits.h"

namespace distro::server {

struct AggregatorOptions {
  // Folder of the run: its configuration, initial model and log. One process at a time. Required.
  std::string data_dir;
  // "s3://BUCKET/PREFIX": the bucket that has the run, of which data_dir is then a copy; empty: the
  // run is in data_dir.
  std::string log_url;
  // With log_url: wait until no other aggregator serves the run.
  bool standby = false;
  // How long the object by which the serving one shows itself may stay the same before one that
  // waits takes over; it is written four times in this time. Smaller values take over sooner, also
  // from one that is only slow.
  absl::Duration takeover_after = absl::Seconds(20);
  // run.json and checkpoint folder of the run to create or continue. Both or neither: without them
  // the process continues the folder's run, or waits for `distroctl run create`.
  std::string run;
  std::string model;
  // gRPC for workers and operators; port 0 takes a free one.
  std::string listen = "127.0.0.1:7700";
  // Metrics, health and the status page, for the cluster; port 0 takes a free one.
  std::string http = "127.0.0.1:7701";
  // Address of results and snapshots over plain HTTP, for mirrors; empty: not served.
  std::string objects;
  // URLs of mirrors of these objects, told to workers in the order to try them.
  std::vector<std::string> mirrors;
  // PEM files of the aggregator's certificate, including its chain, and its key; reloaded when they
  // change.
  std::string cert;
  std::string key;
  // PEM file of the CAs of accepted client certificates; empty: no client certificates. Reloaded
  // when it changes.
  std::string ca;
  // File of tokens (server/auth/tokens/tokens_file.h); empty: no tokens. Reloaded when it changes.
  std::string tokens_file;
  // Plaintext without authentication, instead of the four above.
  bool insecure = false;
  // Answers gRPC's server reflection, to callers with a credential.
  bool reflection = false;
  // Time between a worker's heartbeats. Smaller values detect a dead worker sooner and cost more
  // messages.
  absl::Duration heartbeat_interval = absl::Seconds(2);
  // Silence after which rounds do not wait for a worker until it reports again; 0: 3 heartbeat
  // intervals. Smaller values wait less for a dead worker, and exclude more whose link only stalls.
  absl::Duration suspect_after = absl::ZeroDuration();
  // Silence after which a worker counts as gone; longer than suspect_after.
  absl::Duration lease = absl::Seconds(30);
  // How long a drain lets the open round continue, at most. Larger values lose fewer uploads at a
  // restart; the supervisor's grace period must be longer.
  absl::Duration drain_grace = absl::Seconds(30);
  // Recent results kept in memory. A subscriber that lags further reads the log.
  uint64_t ring_bytes = uint64_t{256} << 20;
  // Limits on the resources that peers may use: by calls, and by connections.
  ServiceLimits limits = {};
  ConnectionLimits connections = ConnectionLimits::ForOpenFiles(OpenFilesLimit());
  // File to which the bound addresses are written once both ports listen; empty: none.
  std::string port_file;
  LogLevel log_level = LogLevel::kInfo;

  // InvalidArgument names the flag and the remedy; for a contradiction, both flags and their
  // values.
  absl::Status Validate() const;
  // suspect_after with its default.
  absl::Duration SuspectAfter() const {
    return suspect_after == absl::ZeroDuration() ? 3 * heartbeat_interval : suspect_after;
  }
};

}  // namespace distro::server
