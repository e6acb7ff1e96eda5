#include "common/client/health.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/steady_cond_var.h"
#include "common/net/rpc/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace distro {
namespace {

// HealthCheckResponse with status SERVING: field 1, a number. The request is empty and the answer
// two bytes, so no generated code is needed.
constexpr absl::string_view kServing("\x08\x01", 2);
constexpr absl::Duration kSlice = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<bool> AskHealth(const std::shared_ptr<grpc::Channel>& channel,
                               absl::Duration timeout, const std::function<bool()>& wanted) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  SteadyNotification done;
  grpc::GenericStub stub(channel);
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&](grpc::Status ended) {
                   status = std::move(ended);
                   done.Notify();
                 });
  while (!done.WaitFor(kSlice))
    if (wanted != nullptr && !wanted()) context.TryCancel();
  DISTRO_RETURN_IF_ERROR(FromGrpcStatus(status));
  grpc::Slice bytes;
  if (!response.DumpToSingleSlice(&bytes).ok())
    return absl::InternalError("the health check's answer is empty");
  return absl::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()) == kServing;
}

}  // namespace distro
