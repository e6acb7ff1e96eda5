// Connects commands with HOST:PORT to their aggregator's admin service. Blocking.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/client/channel.h"
#include "common/client/diagnosis.h"
#include "common/client/health.h"
#include "common/client/options/channel_options.h"
#include "common/client/options/client_flags.h"
#include "common/net/rpc/status.h"
#include "distro/v1/admin.grpc.pb.h"

namespace distro::tools {

// Timeout of one call; the same for all commands.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(20);

// Connects, and waits until the aggregator answers a health check. Statuses as OpenChannel; without
// an answer, the fault of the connection (common/client/probe/connection_fault.h).
inline absl::StatusOr<std::unique_ptr<v1::AdminService::Stub>> OpenAdmin(
    const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(options));
  const absl::Status reached = AskHealth(channel, kCallTimeout).status();
  if (!reached.ok()) return Explain(reached, {.channel = options});
  return v1::AdminService::NewStub(channel);
}

// One unary call.
template <typename Request, typename Response>
absl::StatusOr<Response> CallAdmin(v1::AdminService::StubInterface* admin,
                                   grpc::Status (v1::AdminService::StubInterface::*method)(
                                       grpc::ClientContext*, const Request&, Response*),
                                   const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  Response response;
  const grpc::Status status = (admin->*method)(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

}  // namespace distro::tools
