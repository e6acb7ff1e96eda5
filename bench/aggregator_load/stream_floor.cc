// The floor of an aggregator's cost: the same bytes up and down over plain gRPC streams, with the
// same number of connections, frames of the same size and two processes, but without protobuf,
// checks, or rounds to wait for.
//
//   stream_floor --listen 127.0.0.1:0
//       prints the address it listens on and serves until it is killed
//   stream_floor --server HOST:PORT --workers 32 --rounds 4 --up_bytes 1765062
//       --down_bytes 11380000
//       prints {"seconds": ...}, from the first byte to the last
#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/base/clock.h"
#include "common/base/process/command_line.h"
#include "common/client/channel.h"
#include "common/net/wire/frames.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/client_callback.h"

namespace distro::bench {
namespace {

struct Options {
  std::string listen;
  std::string server;
  int workers = 1;
  uint64_t up_bytes = 0;
  uint64_t down_bytes = 0;
  uint64_t rounds = 1;
};

std::vector<Flag> Flags(Options* o) {
  return {{.name = "listen", .value = &o->listen, .help = "Serve on this address."},
          {.name = "server",
           .value = &o->server,
           .help = "Be the clients of a server on this address."},
          {.name = "workers", .value = &o->workers, .help = "Clients, with two connections each."},
          {.name = "up_bytes",
           .value = ByteSize{&o->up_bytes},
           .help = "Bytes that a client sends a round."},
          {.name = "down_bytes",
           .value = ByteSize{&o->down_bytes},
           .help = "Bytes that a client receives a round."},
          {.name = "rounds",
           .value = &o->rounds,
           .help = "Rounds; no client waits for another between them."}};
}

constexpr char kUp[] = "/floor/Up";
constexpr char kDown[] = "/floor/Down";
constexpr char kBytes[] = "bytes";  // metadata: how many a client wants

// Sends frames of zeros until `bytes` are sent; they share memory.
class Frames {
 public:
  explicit Frames(uint64_t bytes) : left_(bytes), zeros_(std::string(kFrameBytes, '\0')) {}
  bool empty() const { return left_ == 0; }
  grpc::ByteBuffer Next() {
    const uint64_t bytes = std::min(left_, kFrameBytes);
    left_ -= bytes;
    const grpc::Slice frame = bytes == kFrameBytes ? zeros_ : zeros_.sub(0, bytes);
    return grpc::ByteBuffer(&frame, 1);
  }

 private:
  uint64_t left_;
  const grpc::Slice zeros_;
};

// One side of a stream: sends its frames and discards what it receives.
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

// Up: reads to the end. Down: writes as many bytes as the client requests; reads from a client that
// sends nothing end at once.
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

// Seconds until every client had moved its bytes.
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

int RunClients(const Options& options) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 2 * options.workers; ++i)
    channels.push_back(OpenChannel({.aggregator = options.server, .insecure = true}).value());
  Move(channels, 1, 1);  // connects
  const uint64_t rounds = options.rounds;
  const double seconds = Move(channels, rounds * options.up_bytes, rounds * options.down_bytes);
  absl::PrintF("{\"seconds\": %.6f}\n", seconds);
  return 0;
}

absl::StatusOr<int> Main(const Options& options) {
  return options.listen.empty() ? RunClients(options) : Serve(options.listen);
}

}  // namespace
}  // namespace distro::bench

int main(int argc, char** argv) {
  distro::bench::Options options;
  return distro::RunProgram(
      {.name = "stream_floor",
       .summary = "moves bytes over plain gRPC streams: the floor under an aggregator.",
       .commands = {{.flags = distro::bench::Flags(&options),
                     .help = R"(Examples:
  stream_floor --listen 127.0.0.1:0
      Prints the address it listens on and serves until it is killed.

  stream_floor --server HOST:PORT --workers 32 --up_bytes 1765062 --down_bytes 11380000 --rounds 4
      Prints {"seconds": ...}, from the first byte to the last.)",
                     .run = [&options] { return distro::bench::Main(options); }}}},
      argc, argv);
}
