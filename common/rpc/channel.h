// Connections of clients to an aggregator (docs/protocol.md). Every channel made here is a connection of its own
// (gRPC would share one between channels to the same target), so that a bulk transfer never delays a heartbeat.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"

namespace distro {

struct ChannelOptions {
  // "host:port", optionally after "grpc://" or "http://". IPv6 addresses in brackets.
  std::string aggregator;
  // Allows plaintext. There is nothing else yet, so it is required: who sends a model in the clear says so.
  bool insecure = false;
};

// "host:port" of an aggregator URL. InvalidArgument: another scheme, a path, no host, or a port outside 1..65535.
absl::StatusOr<std::string> ParseAggregatorUrl(absl::string_view url);

// A channel with its own connection; it connects when it is used, so an absent aggregator is no error here. Pings an
// idle connection every 60 s and gives it up when a ping is not answered within 60 s (a slow uplink may hold a whole
// upload before the ping). InvalidArgument: the URL. FailedPrecondition: plaintext was not allowed.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ChannelOptions& options);

}  // namespace distro
