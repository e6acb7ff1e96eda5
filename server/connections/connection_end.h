// How connections end that took too much. Plain data.
#pragma once

#include "absl/strings/string_view.h"

namespace distro::server {

// Why a connection was refused or ended: label values of distro_aggregator_connections_ended_total.
enum class ConnectionEnd {
  kFull,               // refused: `connections` are there
  kRate,               // refused: its address, or anonymous ones together, cost too much
  kNoCredential,       // anonymous for too long
  kAnonymousBytes,     // sent too much without a credential
  kMadeRoom,           // the oldest anonymous one, when a further one came
  kNewerOfCredential,  // the oldest of its credential, when a further one came
  kCalls,     // too many calls: refused ones without a credential, or those of its credential
  kOverhead,  // more bytes beyond messages than overhead_bytes_per_second
};
inline constexpr int kConnectionEnds = 8;
absl::string_view ConnectionEndName(ConnectionEnd end);

}  // namespace distro::server
