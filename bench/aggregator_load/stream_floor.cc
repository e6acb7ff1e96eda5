// The floor under an aggregator's throughput: the same bytes up and down over plain gRPC streams, with as many connections, in
// frames of the same size, by two processes as well, and nothing else: no protobuf, no checks, no rounds to wait for.
//
//   stream_floor --listen 127.0.0.1:0                          prints the address it listens on and serves until it is killed
//   stream_floor --server HOST:PORT --workers 32 --up_bytes 1765062 --down_bytes 11380000 --rounds 4
//                                                              prints {"seconds": ...}, from the first byte to the last
#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/base/clock.h"
#include "common/client/channel.h"
#include "common/rpc/frames.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/client_callback.h"

ABSL_FLAG(std::string, listen, "", "Serve on this address.");
ABSL_FLAG(std::string, server, "", "Be the clients of a server on this address.");
ABSL_FLAG(int, workers, 1, "Clients, with two connections each.");
ABSL_FLAG(uint64_t, up_bytes, 0, "Bytes that a client sends a round.");
ABSL_FLAG(uint64_t, down_bytes, 0, "Bytes that a client receives a round.");
ABSL_FLAG(uint64_t, rounds, 1, "Rounds; no client waits for another between them.");

namespace distro::bench {
namespace {

constexpr char kUp[] = "/floor/Up";
constexpr char kDown[] = "/floor/Down";
constexpr char kBytes[] = "bytes";  // metadata: how many a client wants

// Frames of zeros until `bytes` are out; their memory is shared.
class Frames {
 public:
  explicit Frames(uint64_t bytes) : left_(bytes), zeros_(std::string(kMaxFrameBytes, '\0')) {}
  bool empty() const { return left_ == 0; }
  grpc::ByteBuffer Next() {
    const uint64_t bytes = std::min(left_, kMaxFrameBytes);
    left_ -= bytes;
    const grpc::Slice frame = bytes == kMaxFrameBytes ? zeros_ : zeros_.sub(0, bytes);
    return grpc::ByteBuffer(&frame, 1);
  }

 private:
  uint64_t left_;
  const grpc::Slice zeros_;
};

// Either side of a stream: sends its frames and drops what comes.
template <typename Reactor>
class Side : public Reactor {
 public:
  explicit Side(uint64_t bytes) : frames_(bytes) {}

  void OnReadDone(bool ok) override {
    if (ok) return this->StartRead(&in_);
    OnReadsOver();
  }
  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }

 protected:
  virtual void OnReadsOver() {}
  virtual void OnWritesOver() = 0;

  void Begin() {
    this->StartRead(&in_);
    WriteNext();
  }

 private:
  void WriteNext() {
    if (frames_.empty()) return OnWritesOver();
    out_ = frames_.Next();
    this->StartWrite(&out_);
  }

  Frames frames_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;
};

// Up: reads to the end. Down: writes as many bytes as the client wants; reads of a client that sends nothing end at once.
class ServerSide final : public Side<grpc::ServerGenericBidiReactor> {
 public:
  ServerSide(bool down, uint64_t bytes) : Side(bytes), down_(down) { Begin(); }
  void OnDone() override { delete this; }

 private:
  void OnReadsOver() override {
    if (!down_) Finish(grpc::Status::OK);
  }
  void OnWritesOver() override {
    if (down_) Finish(grpc::Status::OK);
  }

  const bool down_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    uint64_t bytes = 0;
    const auto wanted = context->client_metadata().find(kBytes);
    if (wanted != context->client_metadata().end())
      bytes = std::stoull(std::string(wanted->second.data(), wanted->second.size()));
    return new ServerSide(context->method() == kDown, bytes);
  }
};

class ClientSide final : public Side<grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  ClientSide(const std::shared_ptr<grpc::Channel>& channel, const char* method, uint64_t up,
             uint64_t down, absl::BlockingCounter* left)
      : Side(up), stub_(channel), left_(left) {
    context_.AddMetadata(kBytes, absl::StrCat(down));
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
    Begin();
    StartCall();
  }

 private:
  void OnWritesOver() override { StartWritesDone(); }
  void OnDone(const grpc::Status& status) override {
    if (!status.ok()) std::cerr << status.error_message() << "\n";
    left_->DecrementCount();
  }

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  absl::BlockingCounter* const left_;
};

int Serve(const std::string& address) {
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "127.0.0.1:" << port << std::endl;
  server->Wait();
  return 0;
}

// Seconds in which every client moved its bytes.
double Move(const std::vector<std::shared_ptr<grpc::Channel>>& channels, uint64_t up,
            uint64_t down) {
  absl::BlockingCounter left(static_cast<int>(channels.size()));
  std::deque<ClientSide> clients;
  const absl::Duration begin = Clock::Real()->MonotonicNow();
  for (size_t i = 0; i < channels.size(); i += 2) {
    clients.emplace_back(channels[i], kUp, up, 0, &left);
    clients.emplace_back(channels[i + 1], kDown, 0, down, &left);
  }
  left.Wait();
  return absl::ToDoubleSeconds(Clock::Real()->MonotonicNow() - begin);
}

int RunClients(const std::string& address) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 2 * absl::GetFlag(FLAGS_workers); ++i)
    channels.push_back(OpenChannel({.aggregator = address, .insecure = true}).value());
  Move(channels, 1, 1);  // connects
  const uint64_t rounds = absl::GetFlag(FLAGS_rounds);
  const double seconds = Move(channels, rounds * absl::GetFlag(FLAGS_up_bytes),
                              rounds * absl::GetFlag(FLAGS_down_bytes));
  absl::PrintF("{\"seconds\": %.6f}\n", seconds);
  return 0;
}

}  // namespace
}  // namespace distro::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const std::string listen = absl::GetFlag(FLAGS_listen);
  return listen.empty() ? distro::bench::RunClients(absl::GetFlag(FLAGS_server))
                        : distro::bench::Serve(listen);
}
