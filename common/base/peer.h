// Who is at the other end of a connection, in the two forms that limits need. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

struct sockaddr_storage;

namespace distro {

// Of one connection.
struct Peer {
  // "127.0.0.1:4567" or "[2001:db8::1]:4567", without the interface of a link-local address: one open
  // connection has it at a time.
  std::string endpoint;
  // Whose share of the limits it takes: an IPv4 address, or the /64 of an IPv6 one (a single machine
  // has all of it). IPv4 inside IPv6 is IPv4.
  std::string address;
};

// Of what accept(2) or getpeername(2) said. Empty strings: neither IPv4 nor IPv6.
Peer PeerOf(const sockaddr_storage& address);

// The endpoint in a gRPC peer's URI ("ipv4:127.0.0.1:4567", "ipv6:%5B::1%5D:4567"), in the form above;
// empty where it is of another kind.
std::string EndpointOfGrpcPeer(absl::string_view uri);

}  // namespace distro
