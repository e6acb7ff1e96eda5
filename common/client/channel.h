// Connections of clients to an aggregator (docs/protocol.md). Every channel made here is a
// connection of its own (gRPC would share one between channels to the same target), so that a bulk
// transfer never delays a heartbeat.
//
// Thread-safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/client/options/channel_options.h"
#include "grpcpp/channel.h"

namespace distro {

// A channel with its own connection; it connects when it is used, so an absent aggregator is no
// error here. Pings an idle connection every 60 s and gives it up when a ping is not answered
// within 60 s (a slow uplink may hold a whole upload before the ping).
//
// TLS unless `insecure`: certificates and keys that change on disk are used from the next
// connection on, the token file is read at each call. InvalidArgument: the URL, or credentials that
// cannot be used; names the flag or the file. NotFound, PermissionDenied: a file that cannot be
// read.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ChannelOptions& options);

}  // namespace distro
