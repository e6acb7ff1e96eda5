// A scripted worker over gRPC, one call at a time, for the tests of the service.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/version.h"
#include "common/feed/round_assembler.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"
#include "distro/v1/admin.grpc.pb.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace distro::testing {

inline std::shared_ptr<grpc::Channel> TestChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

struct UploadOutcome {
  absl::Status status;
  std::vector<uint32_t> held;
  std::vector<uint32_t> acks;
  std::vector<uint32_t> late;
};

// Follows the rounds on a stream of its own.
class TestSubscription {
 public:
  TestSubscription(v1::AggregatorService::Stub* stub, const v1::SubscribeRoundsRequest& request,
                   const Layout* layout)
      : assembler_(layout, RoundId(request.from_round())) {
    reader_ = stub->SubscribeRounds(&context_, request);
  }
  ~TestSubscription() {
    context_.TryCancel();
    if (reader_ != nullptr) (void)Finish();
  }

  // The next opened or committed round; the stream's status (OutOfRange: it ended with OK).
  absl::StatusOr<RoundEvent> Next() {
    v1::SubscribeRoundsResponse frame;
    while (reader_->Read(&frame)) {
      absl::StatusOr<RoundEvent> event = assembler_.Add(std::move(frame));
      if (!event.ok() || !std::holds_alternative<std::monostate>(*event)) return event;
    }
    const absl::Status status = Finish();
    return status.ok() ? absl::OutOfRangeError("the stream ended") : status;
  }
  absl::StatusOr<OpenedRound> NextOpen() {
    absl::StatusOr<RoundEvent> event = Next();
    if (!event.ok()) return event.status();
    if (auto* open = std::get_if<OpenedRound>(&*event)) return *open;
    return absl::InternalError("a commit where an open round was expected");
  }
  absl::StatusOr<CommittedRound> NextCommit() {
    absl::StatusOr<RoundEvent> event = Next();
    while (event.ok() && std::holds_alternative<OpenedRound>(*event)) event = Next();
    if (!event.ok()) return event.status();
    return std::get<CommittedRound>(*event);
  }

 private:
  absl::Status Finish() {
    const absl::Status status = FromGrpcStatus(reader_->Finish());
    reader_ = nullptr;
    return status;
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::SubscribeRoundsResponse>> reader_;
  RoundAssembler assembler_;
};

class TestWorker {
 public:
  TestWorker(const std::string& address, const std::string& name, uint64_t incarnation)
      : TestWorker(TestChannel(address), name, incarnation) {}
  TestWorker(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
             uint64_t incarnation)
      : stub_(v1::AggregatorService::NewStub(channel)) {
    identity_.set_name(name);
    identity_.set_incarnation(incarnation);
  }

  v1::AggregatorService::Stub* stub() { return stub_.get(); }
  const v1::WorkerIdentity& identity() const { return identity_; }
  const v1::JoinResponse& joined() const { return joined_; }
  // The state hash of the run's initial snapshot; for later rounds this worker, which has no
  // parameters, invents state hashes.
  uint64_t initial_state_hash = 0;

  absl::Status Join(const std::string& data = "data") {
    v1::JoinRequest request;
    *request.mutable_worker() = identity_;
    request.set_data_fingerprint(data);
    request.set_version(std::string(Version()));
    grpc::ClientContext context;
    const absl::Status status = FromGrpcStatus(stub_->Join(&context, request, &joined_));
    if (joined_.snapshot().round() == 0) initial_state_hash = joined_.snapshot().state_hash();
    return status;
  }

  v1::HeartbeatResponse Heartbeat(uint64_t next_round, uint64_t log_hash) {
    v1::HeartbeatRequest request;
    request.set_next_round(next_round);
    request.set_log_hash(log_hash);
    return Heartbeat(std::move(request));
  }
  // The heartbeat of a worker that is still loading the snapshot.
  v1::HeartbeatResponse HeartbeatWhileLoading() { return Heartbeat(v1::HeartbeatRequest()); }
  v1::HeartbeatResponse Heartbeat(v1::HeartbeatRequest request) {
    *request.mutable_worker() = identity_;
    request.set_sequence(++sequence_);
    v1::HeartbeatResponse response;
    grpc::ClientContext context;
    (void)stub_->Heartbeat(&context, request, &response);
    return response;
  }

  std::unique_ptr<TestSubscription> Subscribe(const Layout* layout, uint64_t from = 0,
                                              uint64_t hash = 0) {
    v1::SubscribeRoundsRequest request;
    *request.mutable_worker() = identity_;
    request.set_run_id(joined_.run_id());
    request.set_from_round(from);
    request.set_last_hash(hash);
    return std::make_unique<TestSubscription>(stub_.get(), request, layout);
  }

  v1::UploadHeader Header(uint64_t round) const {
    v1::UploadHeader header;
    *header.mutable_worker() = identity_;
    header.set_epoch(joined_.epoch());
    header.set_round(round);
    header.set_state_hash(round == 0 ? initial_state_hash : round);
    header.set_loss(2);
    return header;
  }

  // The whole update of a round, without the segments that the server holds.
  UploadOutcome Upload(uint64_t round, const std::vector<SharedBytes>& payloads) {
    std::vector<v1::UploadFrame> frames;
    for (uint32_t s = 0; s < payloads.size(); ++s) {
      if (payloads[s] == nullptr) continue;
      for (uint64_t offset = 0; offset < payloads[s]->size();) {
        const uint64_t size = FrameBytes(offset, payloads[s]->size());
        v1::UploadFrame& frame = frames.emplace_back();
        frame.set_segment(s);
        frame.set_offset(offset);
        frame.set_payload_bytes(payloads[s]->size());
        frame.set_data(payloads[s]->substr(offset, size));
        offset += size;
      }
    }
    return Send(Header(round), frames);
  }

  // Sends exactly these messages.
  UploadOutcome Send(const v1::UploadHeader& header, const std::vector<v1::UploadFrame>& frames) {
    grpc::ClientContext context;
    auto stream = stub_->UploadUpdate(&context);
    v1::UploadUpdateRequest request;
    *request.mutable_header() = header;
    stream->Write(request);
    UploadOutcome outcome;
    v1::UploadUpdateResponse response;
    if (stream->Read(&response)) {
      outcome.held.assign(response.held().segments().begin(), response.held().segments().end());
      for (const v1::UploadFrame& frame : frames) {
        *request.mutable_frame() = frame;
        if (!stream->Write(request)) break;
      }
      stream->WritesDone();
      while (stream->Read(&response)) {
        (response.ack().late() ? outcome.late : outcome.acks).push_back(response.ack().segment());
      }
    }
    outcome.status = FromGrpcStatus(stream->Finish());
    return outcome;
  }

  absl::Status Leave() {
    v1::LeaveRequest request;
    *request.mutable_worker() = identity_;
    v1::LeaveResponse response;
    grpc::ClientContext context;
    return FromGrpcStatus(stub_->Leave(&context, request, &response));
  }

 private:
  v1::WorkerIdentity identity_;
  std::unique_ptr<v1::AggregatorService::Stub> stub_;
  v1::JoinResponse joined_;
  uint64_t sequence_ = 0;
};

}  // namespace distro::testing
