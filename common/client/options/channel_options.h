// The options of a connection to an aggregator: address, encryption and credentials
// (docs/security.md). distro-worker, distro-archiver and distroctl have the same flags for them.
// Plain data; no gRPC here.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

struct ClientTls {
  // PEM file of the CAs to trust for the aggregator's certificate. Empty: the system's.
  std::string ca = {};
  // PEM files of the client's own certificate, with its chain, and its key. Both or neither.
  std::string cert = {};
  std::string key = {};
  // Path of an invite (invite.h), which contains CA and token: used instead of the other four.
  std::string invite = {};
  // File with the client's token, one line.
  std::string token_file = {};
  // Name expected in the aggregator's certificate; empty: the address's host.
  std::string server_name = {};

  bool operator==(const ClientTls&) const = default;
};

struct ChannelOptions {
  // "host:port", optionally after grpc:// or http://, or grpcs:// or https:// for TLS only. IPv6
  // addresses in brackets.
  std::string aggregator;
  // Plaintext, without authentication.
  bool insecure = false;
  // Used unless `insecure`.
  ClientTls tls = {};
};

// Checks --connect_timeout; 0 means no limit. InvalidArgument: below 0.
absl::Status ValidateConnectTimeout(absl::Duration timeout);
// The timeout as a duration: 0 becomes infinite.
inline absl::Duration PatienceOf(absl::Duration connect_timeout) {
  return connect_timeout == absl::ZeroDuration() ? absl::InfiniteDuration() : connect_timeout;
}

// "host:port" of an aggregator URL. InvalidArgument: another scheme, a path, no host, or a port
// outside 1..65535.
absl::StatusOr<std::string> ParseAggregatorUrl(absl::string_view url);

// InvalidArgument names the flags and the remedy: a certificate without its key or the reverse, or
// TLS flags with --insecure, which would ignore them.
absl::Status ValidateClientTls(bool insecure, const ClientTls& tls);
// The same for clients that the aggregator must know: also TLS without a certificate or a token.
absl::Status ValidateCredential(bool insecure, const ClientTls& tls);

}  // namespace distro
