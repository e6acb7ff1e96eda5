#include "common/client/member/offer_update.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"

namespace distro {
namespace {

using Stream = grpc::ClientReaderWriterInterface<v1::UploadUpdateRequest, v1::UploadUpdateResponse>;

// Unread acknowledgements: few enough for the stream's receive window.
constexpr size_t kMaxUnread = 1024;

class Upload {
 public:
  Upload(Stream* stream, const RoundUpdate& update, TransferMeter* meter)
      : stream_(stream), update_(update), meter_(meter), done_(update.payloads.size(), false) {}

  // These return false when the stream broke, or when the aggregator broke the protocol (then
  // protocol_error() is not OK).
  bool SendHeader(const v1::WorkerIdentity& worker, EpochId epoch);
  bool ReadHeld();
  bool SendSegments();
  // Reads the remaining acknowledgements; true if every segment is done.
  bool ReadAcks() {
    while (ReadAck()) {
    }
    return protocol_error_.ok() && left() == 0;
  }

  size_t left() const { return update_.payloads.size() - finished_; }
  size_t late() const { return late_; }  // acknowledged after their segment had closed
  const absl::Status& protocol_error() const { return protocol_error_; }

 private:
  bool ReadAck();
  bool SendSegment(uint32_t segment);
  bool Mark(uint32_t segment);

  Stream* const stream_;
  const RoundUpdate& update_;
  TransferMeter* const meter_;
  std::vector<bool> done_;  // [segments] held or acknowledged
  size_t finished_ = 0;     // number of true in done_
  size_t unread_ = 0;       // segments sent but not acknowledged
  size_t late_ = 0;
  absl::Status protocol_error_;
};

bool Upload::SendHeader(const v1::WorkerIdentity& worker, EpochId epoch) {
  v1::UploadUpdateRequest request;
  v1::UploadHeader* header = request.mutable_header();
  *header->mutable_worker() = worker;
  header->set_epoch(epoch.value());
  header->set_round(update_.round.value());
  header->set_state_hash(update_.state_hash);
  header->set_abstain(update_.abstain);
  header->set_loss(update_.loss);
  header->set_local_steps(update_.local_steps);
  header->set_first_sample(update_.first_sample);
  header->mutable_tensor_hashes()->Add(update_.tensor_hashes.begin(), update_.tensor_hashes.end());
  meter_->AddControl(request.ByteSizeLong(), 0);
  return stream_->Write(request);
}

bool Upload::Mark(uint32_t segment) {
  if (segment >= done_.size()) {
    protocol_error_ =
        absl::InternalError(absl::StrCat("the aggregator acknowledged segment ", segment,
                                         ", and the update has ", done_.size(), " segments"));
    return false;
  }
  if (!done_[segment]) ++finished_;
  done_[segment] = true;
  return true;
}

bool Upload::ReadHeld() {
  v1::UploadUpdateResponse response;
  if (!stream_->Read(&response)) return false;
  if (!response.has_held()) {
    protocol_error_ =
        absl::InternalError("the aggregator's first answer does not list the segments that it has");
    return false;
  }
  for (const uint32_t segment : response.held().segments()) {
    if (!Mark(segment)) return false;
  }
  return true;
}

bool Upload::ReadAck() {
  v1::UploadUpdateResponse response;
  if (!stream_->Read(&response)) return false;
  if (unread_ > 0) --unread_;
  if (response.ack().late()) ++late_;
  return !response.has_ack() || Mark(response.ack().segment());
}

bool Upload::SendSegments() {
  const uint64_t segments = update_.payloads.size();
  for (uint64_t i = 0; i < segments; ++i) {
    const uint32_t segment =
        static_cast<uint32_t>((update_.round.value() % segments + i) % segments);
    if (done_[segment]) continue;
    if (!SendSegment(segment)) return false;
    if (++unread_ >= kMaxUnread && !ReadAck()) return false;
  }
  return stream_->WritesDone();
}

bool Upload::SendSegment(uint32_t segment) {
  const std::string& payload = *update_.payloads[segment];
  v1::UploadUpdateRequest request;
  v1::UploadFrame* frame = request.mutable_frame();
  frame->set_segment(segment);
  frame->set_payload_bytes(payload.size());
  for (uint64_t offset = 0; offset < payload.size();) {
    const uint64_t bytes = FrameBytes(offset, payload.size());
    frame->set_offset(offset);
    frame->set_data(payload.data() + offset, bytes);
    if (!stream_->Write(request)) return false;
    meter_->AddSent(bytes);
    offset += bytes;
  }
  return true;
}

// gRPC's Finish() does not return while messages are unread.
absl::Status Finish(Stream* stream) {
  v1::UploadUpdateResponse unread;
  while (stream->Read(&unread)) {
  }
  return FromGrpcStatus(stream->Finish());
}

}  // namespace

absl::Status OfferUpdate(const SessionContext& context, Connection* connection,
                         const RoundUpdate& update, EpochId epoch) {
  ClientCall call(context.state, [round = update.round, epoch](const ClientView& view) {
    return view.epoch == epoch && view.next_round <= round;
  });
  call.context()->set_wait_for_ready(true);
  const std::shared_ptr<Connection::Stub> stub = connection->stub();
  const std::unique_ptr<Stream> stream = stub->UploadUpdate(call.context());
  Upload upload(stream.get(), update, context.meter);
  bool complete = false;
  if (upload.SendHeader(context.state->worker(), epoch) && upload.ReadHeld()) {
    const bool sends = upload.left() > 0;
    if (sends) context.meter->BeginUpload(context.clock->MonotonicNow());
    complete = upload.SendSegments() && upload.ReadAcks();
    if (sends) context.meter->EndUpload(context.clock->MonotonicNow(), complete);
  }
  if (upload.late() > 0) {
    context.log->Info("segments were late: what they held is sent with a later update",
                      {{"round", update.round.value()}, {"segments", upload.late()}});
  }
  if (!upload.protocol_error().ok()) call.context()->TryCancel();
  const absl::Status status = Finish(stream.get());
  connection->Heed(status);
  if (!upload.protocol_error().ok()) return upload.protocol_error();
  if (status.ok() && !complete) {
    return absl::UnavailableError(
        absl::StrCat("the stream ended with ", upload.left(), " segments not acknowledged"));
  }
  return status;
}

}  // namespace distro
