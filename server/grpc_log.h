// What gRPC writes by itself. Process-wide: for main functions.
#pragma once

namespace distro::server {

// From now on gRPC's own lines on standard error are at most 20 a minute: it writes one for every handshake that fails and
// every message that it refuses, and strangers make as many of those as they like.
void LimitGrpcLog();

}  // namespace distro::server
