#include "common/client/health.h"

#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/client/await_call.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace distro {
namespace {

// HealthCheckResponse with status SERVING: field 1, a number. The request is empty and the answer
// two bytes, so no generated code is needed.
constexpr absl::string_view kServing("\x08\x01", 2);

}  // namespace

absl::StatusOr<bool> AskHealth(const std::shared_ptr<grpc::Channel>& channel,
                               absl::Duration timeout, const std::function<bool()>& wanted) {
  grpc::ClientContext context;
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::GenericStub stub(channel);
  DISTRO_RETURN_IF_ERROR(AwaitCall(
      &context, timeout,
      [&](AnswerTaker done) {
        stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                       std::move(done));
      },
      wanted));
  grpc::Slice bytes;
  if (!response.DumpToSingleSlice(&bytes).ok())
    return absl::InternalError("the health check's answer is empty");
  return absl::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()) == kServing;
}

}  // namespace distro
