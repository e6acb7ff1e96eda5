// One unary call of the admin service, with the deadline of all commands. Blocking.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"
#include "distro/v1/admin.grpc.pb.h"

namespace distro::tools {

inline constexpr absl::Duration kCallTimeout = absl::Seconds(20);

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
