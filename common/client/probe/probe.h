// Looks at the way to an aggregator, below gRPC: name, connection, TLS, HTTP/2. It is asked when a
// call failed, and by `distroctl check-connection`; that all is well is for a call to say
// (common/client/diagnosis.h). Blocking; thread-safe; nothing is kept.
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
#include "common/client/probe/certificate.h"
#include "common/client/probe/connection_fault.h"

namespace distro {

struct ProbeOptions {
  ChannelOptions channel;
  // Of each step. Longer than the slowest handshake; a host that drops everything costs so much.
  absl::Duration step_timeout = absl::Seconds(10);
  // Asked every 100 ms while a step waits; false: Cancelled. Empty: always wanted.
  std::function<bool()> wanted = nullptr;
  // Whose calendar certificates are judged by; borrowed.
  const Clock* clock = Clock::Real();
};

struct ProbeStep {
  std::string name;  // "resolve", "connect", "tls", "http2", "health"
  bool ok = false;
  std::string seen;  // for people, one line
  absl::Duration took;
};

struct ConnectionLook {
  std::string address;           // host:port
  std::vector<ProbeStep> steps;  // as far as they went; the last one may have failed
  std::vector<std::string> ip_addresses;
  std::optional<CertificateFacts> certificate;
  std::string tls_version;  // "TLSv1.3"; empty: plaintext, or it did not get so far
  std::string alpn;
  std::string health;  // of the aggregator: SERVING, NOT_SERVING; empty: it was not asked
  // The environment's variable for a proxy that gRPC goes through and the look does not.
  std::string proxy_variable;
  std::optional<ConnectionFault> fault;  // of the step that failed
};

// InvalidArgument, NotFound, PermissionDenied: the address or the files of the flags cannot be
// used. Cancelled: it is not wanted any more. What the way is like is an answer, no error.
absl::StatusOr<ConnectionLook> Probe(const ProbeOptions& options);

}  // namespace distro
