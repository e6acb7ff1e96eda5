// The standard question whether a gRPC server serves (grpc.health.v1), which anybody may ask an
// aggregator. Blocking; thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace distro {

// Whether the whole server serves; false: it is draining, or has not started. Does not wait for a
// connection that fails. Unimplemented: a server without this service. Cancelled: `wanted`, asked
// every 100 ms, is false. Otherwise the statuses of a call.
absl::StatusOr<bool> AskHealth(const std::shared_ptr<grpc::Channel>& channel,
                               absl::Duration timeout,
                               const std::function<bool()>& wanted = nullptr);

}  // namespace distro
