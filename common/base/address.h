// Network addresses as text: of a connection's peer, and to listen on. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sockaddr_storage;

namespace distro {

// A connection's peer, in the two forms that limits need.
struct Peer {
  // "127.0.0.1:4567" or "[2001:db8::1]:4567", without the interface of a link-local address. Unique
  // among open connections.
  std::string endpoint;
  // The key for limits per client: an IPv4 address, or the /64 of an IPv6 address (one machine may
  // use all of it). An IPv4-mapped IPv6 address counts as IPv4.
  std::string address;
};

// Converts the address from accept(2) or getpeername(2). Empty strings if it is neither IPv4 nor
// IPv6.
Peer PeerOf(const sockaddr_storage& address);

// The endpoint in a gRPC peer's URI ("ipv4:127.0.0.1:4567", "ipv6:%5B::1%5D:4567"), in the form
// above; empty for other kinds of URI.
std::string EndpointOfGrpcPeer(absl::string_view uri);

// An address to listen on.
struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 0: any free port
};

// "127.0.0.1:7700", "[::1]:0". InvalidArgument: no host, no port, a port outside 0..65535, IPv6
// without brackets.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);
// The inverse: "127.0.0.1:7700", "[::1]:0".
std::string JoinHostPort(absl::string_view host, int port);

}  // namespace distro
