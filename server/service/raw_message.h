// Messages of calls whose bytes we parse ourselves. gRPC would answer bytes that are no message
// with Unimplemented where the call has one request, and report them as the end of the stream where
// it has many. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "common/base/reason.h"
#include "common/round_log/committed_round.h"
#include "common/rpc/status.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace distro::server {

// What the generated code wants of a stream with raw messages.
using RawBidiReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;
using RawWriteReactor = grpc::ServerWriteReactor<grpc::ByteBuffer>;

// InvalidArgument `malformed`: the bytes are no Message, a string in it is not UTF-8, or there is
// no message at all.
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

// Broadcast bytes as a gRPC message without a copy: every subscriber's slice counts on the same
// string.
grpc::ByteBuffer ShareBytes(const SharedBytes& bytes);

// A stream that ends at once: the answer to a caller who may not open it. A reactor of that base,
// which deletes itself. Requires a status other than OK.
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
