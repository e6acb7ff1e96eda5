// Parses messages of calls ourselves. For invalid bytes gRPC would answer a unary call with
// Unimplemented, and report the end of the stream on a streaming call. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "common/base/reason.h"
#include "common/net/rpc/status.h"
#include "common/run/record/committed_round.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace distro::server {

// The base classes that the generated code expects for streams of raw messages.
using RawBidiReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;
using RawWriteReactor = grpc::ServerWriteReactor<grpc::ByteBuffer>;

// InvalidArgument `malformed`: the bytes are not a Message, a string in it is not UTF-8, or there
// is no message at all.
template <typename Message>
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, Message* message) {
  grpc::ByteBuffer shared = bytes;  // the parser takes it; what it shares is not copied
  if (grpc::SerializationTraits<Message>::Deserialize(&shared, message).ok())
    return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "malformed",
                         "the message cannot be parsed, or a string in it is not UTF-8");
}

template <typename Message>
grpc::ByteBuffer SerializeMessage(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  (void)grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own);
  return bytes;
}

// Wraps broadcast bytes in a gRPC message without a copy: all subscribers' slices share the string.
grpc::ByteBuffer ShareBytes(const SharedBytes& bytes);

// A reactor that ends its stream at once with `status`, for a caller that may not open it. Deletes
// itself. Requires a status other than OK.
template <typename Reactor>
Reactor* RefuseStream(const absl::Status& status) {
  class Refused final : public Reactor {
   public:
    explicit Refused(const absl::Status& refusal) { this->Finish(ToGrpcStatus(refusal)); }
    void OnDone() override { delete this; }
  };
  return new Refused(status);
}

}  // namespace distro::server
