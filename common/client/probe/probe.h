// Probes the path to an aggregator below gRPC: name, connection, TLS, HTTP/2. Used when a call has
// failed, and by `distroctl check-connection`. Only a call can show that everything works
// (common/client/diagnosis.h). Blocking; thread-safe; keeps no state.
//
//   const absl::StatusOr<ConnectionLook> look = Probe({.channel = options.channel});
//   if (look.ok() && look->fault) return StatusOf(*look->fault);
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/client/options/channel_options.h"
#include "common/client/options/proxy.h"
#include "common/client/probe/certificate.h"
#include "common/client/probe/connection_fault.h"

namespace distro {

struct ProbeOptions {
  ChannelOptions channel;
  // Limit of each step. Should exceed the slowest handshake; a host that drops all packets costs
  // this long.
  absl::Duration step_timeout = absl::Seconds(10);
  // Called every 100 ms while a step waits; false: Cancelled. Empty: always wanted.
  std::function<bool()> wanted = nullptr;
  // The clock for the dates of certificates; borrowed.
  const Clock* clock = Clock::Real();
};

struct ProbeStep {
  std::string name;  // "resolve", "connect", "tls", "http2", "health"
  bool ok = false;
  std::string seen;  // one line, for people
  absl::Duration took;
};

struct ConnectionLook {
  std::string address;           // host:port
  std::vector<ProbeStep> steps;  // those that ran; after one that failed only "health" follows
  std::vector<std::string> ip_addresses;
  std::optional<CertificateFacts> certificate;
  std::string tls_version;  // "TLSv1.3"; empty: plaintext, or not reached
  std::string alpn;
  std::string health;          // of the aggregator: SERVING, NOT_SERVING; empty: not asked
  std::optional<Proxy> proxy;  // that calls use and the probe does not
  std::optional<ConnectionFault> fault;  // of the failed step
};

// InvalidArgument, NotFound, PermissionDenied: the address or the files of the flags cannot be
// used. Cancelled: `wanted` returned false. Faults of the connection are results, not errors.
absl::StatusOr<ConnectionLook> Probe(const ProbeOptions& options);

}  // namespace distro
