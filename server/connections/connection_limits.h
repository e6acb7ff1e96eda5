// Limits on connections to an aggregator (docs/security.md, "Connections"). Plain data.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace distro::server {

// The minimum cost of an anonymous connection: a TLS handshake takes about as much CPU time as 4
// KiB of headers.
inline constexpr uint64_t kConnectionCost = 4 << 10;

// The defaults are far above what honest peers need; docs/security.md has the arithmetic.
struct ConnectionLimits {
  // Open connections, including anonymous ones.
  int connections = 4096;
  // Open anonymous connections, in total and per address. One more closes the oldest of the address
  // with the most, or of its own, so that idle connections cannot keep others out.
  int anonymous = 512;
  int anonymous_of_address = 128;
  // How long a connection may stay anonymous, and how many bytes it may send in that time: a TLS
  // handshake with a certificate chain and the metadata of a call are about 5 KiB.
  absl::Duration anonymous_time = absl::Seconds(10);
  uint64_t anonymous_bytes = 32 << 10;
  // The rate of anonymous connections in bytes, in total and per address; each connection counts as
  // at least 4 KiB. For an address that presented a credential within `known_for`, only the limit
  // per address applies.
  uint64_t anonymous_bytes_per_second = 64 << 10;
  uint64_t anonymous_burst = 512 << 10;
  uint64_t address_bytes_per_second = 32 << 10;
  uint64_t address_burst = 256 << 10;
  absl::Duration known_for = absl::Hours(24);
  // Calls without a valid credential on one connection.
  int anonymous_calls = 16;
  // Open connections of one credential; a worker has three. One more closes the oldest.
  int of_credential = 8;
  // Rate of new calls on a credential's connections; a new connection counts as 20 calls.
  uint64_t calls_per_second = 200;
  uint64_t calls_burst = 500;
  // Rate of bytes that are not messages, on a credential's connections. The burst allows for
  // messages on their way to handlers.
  uint64_t overhead_bytes_per_second = 128 << 10;
  uint64_t overhead_burst = 16 << 20;

  // The limits for a process that may have this many open files. A connection is one file, and a
  // follower of the log may need a second; 256 are reserved for everything else.
  static ConnectionLimits ForOpenFiles(uint64_t open_files);
};

// Below this the aggregator does not start: 384 connections.
inline constexpr uint64_t kMinOpenFiles = 1024;

// The process's limit of open files, which PrepareProcess has raised as far as it may.
uint64_t OpenFilesLimit();

}  // namespace distro::server
