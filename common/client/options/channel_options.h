// The options of a connection to an aggregator: address, encryption and credentials
// (docs/security.md). The same flags in distro-worker, distro-archiver and distroctl. Plain data;
// no gRPC here.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

struct ClientTls {
  // PEM file of the CAs that may have issued the aggregator's certificate. Empty: the system's.
  std::string ca = {};
  // PEM files of the client's own certificate, chain included, and its key. Both or neither.
  std::string cert = {};
  std::string key = {};
  // An invite (invite.h), which has CA and token: instead of the four others.
  std::string invite = {};
  // File that holds the client's token, one line.
  std::string token_file = {};
  // Name that the aggregator's certificate must have; empty: the address's host.
  std::string server_name = {};

  bool operator==(const ClientTls&) const = default;
};

struct ChannelOptions {
  // "host:port", optionally after grpc:// or http://, or grpcs:// or https:// for TLS only. IPv6
  // addresses in brackets.
  std::string aggregator;
  // Plaintext, and nobody is authenticated.
  bool insecure = false;
  // Without `insecure`.
  ClientTls tls = {};
};

// Of --connect_timeout, where 0 means for ever. InvalidArgument: below 0.
absl::Status ValidateConnectTimeout(absl::Duration timeout);
// As long as it is meant.
inline absl::Duration PatienceOf(absl::Duration connect_timeout) {
  return connect_timeout == absl::ZeroDuration() ? absl::InfiniteDuration() : connect_timeout;
}

// "host:port" of an aggregator URL. InvalidArgument: another scheme, a path, no host, or a port
// outside 1..65535.
absl::StatusOr<std::string> ParseAggregatorUrl(absl::string_view url);

// InvalidArgument names the flags and the remedy: neither a certificate nor a token where TLS is
// spoken, half a certificate, or TLS flags beside --insecure, which would not do what they say.
absl::Status ValidateClientTls(bool insecure, const ClientTls& tls);

}  // namespace distro
