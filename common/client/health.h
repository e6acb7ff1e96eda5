// Asks a gRPC server whether it serves (grpc.health.v1). An aggregator answers without credentials.
// Blocking; thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace distro {

// Whether the server as a whole serves; false: it is draining or has not started. Fails at once if
// the connection fails. Unimplemented: the server has no health service. Cancelled: `wanted`,
// called every 100 ms, returned false. Otherwise the statuses of a call.
absl::StatusOr<bool> AskHealth(const std::shared_ptr<grpc::Channel>& channel,
                               absl::Duration timeout,
                               const std::function<bool()>& wanted = nullptr);

}  // namespace distro
