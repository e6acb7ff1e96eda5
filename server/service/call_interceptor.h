// Reports the start, messages and end of every call to an observer (docs/metrics.md, "Calls"),
// without involving the services. Thread-safe.
#pragma once

#include "common/base/clock.h"
#include "grpcpp/server_builder.h"
#include "server/call/observers.h"

namespace distro::server {

// `observer` and `clock` are borrowed and outlive the server.
void ObserveCalls(CallObserver* observer, const Clock* clock, grpc::ServerBuilder* builder);

}  // namespace distro::server
