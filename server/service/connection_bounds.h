// What gRPC itself takes of peers before a handler runs (docs/protocol.md, "Limits"): metadata, messages, streams a
// connection, the time of a handshake, buffers.
#pragma once

#include "grpcpp/server_builder.h"
#include "server/limits/service_limits.h"

namespace distro::server {

void BoundConnections(const ServiceLimits& limits, grpc::ServerBuilder* builder);

}  // namespace distro::server
