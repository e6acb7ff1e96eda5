// Calls any method with arbitrary bytes as the message, which generated clients cannot send.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/status.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace distro::testing {

struct RawAnswer {
  absl::Status status;
  int messages = 0;
};

struct RawOptions {
  std::string authorization = {};  // metadata; empty: none
  grpc_compression_algorithm compression = GRPC_COMPRESS_NONE;
};

// `path` is "/package.Service/Method". Waits for the end of the call, 30 s at most.
inline RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                         absl::string_view message, const RawOptions& options = {}) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  context.set_compression_algorithm(options.compression);
  if (!options.authorization.empty()) context.AddMetadata("authorization", options.authorization);
  const auto call = stub.PrepareCall(&context, path, &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  grpc::Slice slice(message.data(), message.size());
  RawAnswer answer;
  grpc::ByteBuffer received;
  grpc::Status status;
  call->StartCall(nullptr);
  wait();
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  wait();
  call->Read(&received, nullptr);
  while (wait()) {
    ++answer.messages;
    call->Read(&received, nullptr);
  }
  call->Finish(&status, nullptr);
  wait();
  queue.Shutdown();
  while (wait()) {
  }
  answer.status = FromGrpcStatus(status);
  return answer;
}

}  // namespace distro::testing
