// Connections of clients to an aggregator (docs/protocol.md). Every channel made here is a
// connection of its own (gRPC would share one between channels to the same target), so that a bulk
// transfer never delays a heartbeat.
//
// Thread-safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/options/channel_options.h"
#include "grpcpp/channel.h"

namespace distro {

// Time of an attempt to connect to one of the aggregator's addresses, after which the next is
// tried: what a server gives a handshake.
inline constexpr absl::Duration kConnectAttempt = absl::Seconds(10);

// Opens a channel with its own connection. It connects at the first call, so an aggregator that is
// down is no error here. An idle connection is pinged every 40 s and dropped when a ping gets no
// answer within 60 s (on a slow uplink a whole upload may be ahead of the ping).
//
// Uses TLS unless `insecure`. Certificates and keys that change on disk are used from the next
// connection on; a token file that changes, from the next call after half a second on. The token of
// before stays in use while the file cannot be read, or its disk does not answer. InvalidArgument:
// a bad URL or unusable credentials; names the flag or the file. NotFound, PermissionDenied: a file
// cannot be read.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ChannelOptions& options);

// The same without requiring a credential. The aggregator refuses calls that need one.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenAnonymousChannel(const ChannelOptions& options);

}  // namespace distro
