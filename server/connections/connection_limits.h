// Limits on connections to an aggregator (docs/security.md, "Connections"). Plain data.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace distro::server {

// What an anonymous connection counts as at least: a TLS handshake costs about as much processor
// time as 4 KiB of headers.
inline constexpr uint64_t kConnectionCost = 4 << 10;

// The defaults are far above what honest peers need; docs/security.md has the arithmetic.
struct ConnectionLimits {
  // At one time, anonymous ones included.
  int connections = 4096;
  // Anonymous ones at one time, of all addresses and of one. One more ends the oldest of the
  // address that has most, or of its own, so that silent connections cannot keep others out.
  int anonymous = 512;
  int anonymous_of_address = 128;
  // How long one may stay anonymous, and how many bytes it may send as such: a TLS handshake with a
  // certificate chain and the metadata of a call are about 5 KiB.
  absl::Duration anonymous_time = absl::Seconds(10);
  uint64_t anonymous_bytes = 32 << 10;
  // What anonymous connections may cost, in bytes: each counts as 4 KiB at least. An address from
  // which a credential was shown within `known_for` is held to its own share only.
  uint64_t anonymous_bytes_per_second = 64 << 10;
  uint64_t anonymous_burst = 512 << 10;
  uint64_t address_bytes_per_second = 32 << 10;
  uint64_t address_burst = 256 << 10;
  absl::Duration known_for = absl::Hours(24);
  // Calls on one that were refused for want of a credential.
  int anonymous_calls = 16;
  // Of one credential; a worker holds three. One more ends the oldest.
  int of_credential = 8;
  // Calls that begin on connections of a credential; a connection counts as 20.
  uint64_t calls_per_second = 200;
  uint64_t calls_burst = 500;
  // Bytes beyond messages, of a credential's connections. The burst is what may be on its way to
  // handlers.
  uint64_t overhead_bytes_per_second = 128 << 10;
  uint64_t overhead_burst = 16 << 20;

  // As above for a process that may have so many files open. A connection is a file, and whoever
  // follows the log through one reads a second; 256 are for everything else.
  static ConnectionLimits ForOpenFiles(uint64_t open_files);
};

// Below this the aggregator does not start: 384 connections.
inline constexpr uint64_t kMinOpenFiles = 1024;

// How many files the process may have open. Process-wide: for main functions and checks at start.

// Raises the limit to the highest that the process may give itself.
void RaiseOpenFiles();

// What it is.
uint64_t OpenFilesLimit();

}  // namespace distro::server
