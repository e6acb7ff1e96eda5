// Addresses as text: who is at the other end of a connection, and where to listen. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sockaddr_storage;

namespace distro {

// The other end of a connection, in the two forms that limits need.
struct Peer {
  // "127.0.0.1:4567" or "[2001:db8::1]:4567", without the interface of a link-local address: one
  // open connection has it at a time.
  std::string endpoint;
  // Whose share of the limits it takes: an IPv4 address, or the /64 of an IPv6 one (a single
  // machine has all of it). IPv4 inside IPv6 is IPv4.
  std::string address;
};

// Of what accept(2) or getpeername(2) said. Empty strings: neither IPv4 nor IPv6.
Peer PeerOf(const sockaddr_storage& address);

// The endpoint in a gRPC peer's URI ("ipv4:127.0.0.1:4567", "ipv6:%5B::1%5D:4567"), in the form
// above; empty where it is of another kind.
std::string EndpointOfGrpcPeer(absl::string_view uri);

// To listen on.
struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 0: a free one is taken
};

// "127.0.0.1:7700", "[::1]:0". InvalidArgument: no host, no port, a port outside 0..65535, IPv6
// without brackets.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

}  // namespace distro
