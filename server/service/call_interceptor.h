// Tells an observer of every call, with its messages and its end (docs/metrics.md, "Calls"). The
// services know nothing of it. Thread-safe.
#pragma once

#include "common/base/clock.h"
#include "grpcpp/server_builder.h"
#include "server/call/observers.h"

namespace distro::server {

// `observer` and `clock` are borrowed and outlive the server.
void ObserveCalls(CallObserver* observer, const Clock* clock, grpc::ServerBuilder* builder);

}  // namespace distro::server
