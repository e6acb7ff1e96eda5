#include "common/client/member/uploader.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/client/backoff.h"
#include "common/client/status_action.h"
#include "common/rpc/status.h"
#include "common/wire/frames.h"

namespace distro {
namespace {

// Offers of an update whose bytes are refused. The aggregator quarantines a worker after three in a
// row.
constexpr int kMaxMalformed = 2;

using Stream = grpc::ClientReaderWriterInterface<v1::UploadUpdateRequest, v1::UploadUpdateResponse>;

// Acknowledgements that may be on their way: few enough for the stream's receive window.
constexpr size_t kMaxUnread = 1024;

class Upload {
 public:
  Upload(Stream* stream, const RoundUpdate& update, TransferMeter* meter)
      : stream_(stream), update_(update), meter_(meter), done_(update.payloads.size(), false) {}

  // Each returns false when the stream broke, or the aggregator broke its rules (then
  // protocol_error() is not OK).
  bool SendHeader(const v1::WorkerIdentity& worker, EpochId epoch);
  bool ReadHeld();
  bool SendSegments();
  // All that still comes; true when every segment is done then.
  bool ReadAcks() {
    while (ReadAck()) {
    }
    return protocol_error_.ok() && left() == 0;
  }

  size_t left() const { return update_.payloads.size() - finished_; }
  size_t late() const { return late_; }  // acknowledged, but their segment had closed
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
  header->mutable_tensor_hashes()->Add(update_.tensor_hashes.begin(), update_.tensor_hashes.end());
  meter_->AddControl(request.ByteSizeLong(), 0);
  return stream_->Write(request);
}

bool Upload::Mark(uint32_t segment) {
  if (segment >= done_.size()) {
    protocol_error_ = absl::InternalError(
        absl::StrCat("the aggregator acknowledged segment ", segment, " of ", done_.size()));
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
    protocol_error_ = absl::InternalError("the aggregator did not begin with what it holds");
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

// gRPC's Finish() waits for ever while messages are unread.
absl::Status Finish(Stream* stream) {
  v1::UploadUpdateResponse unread;
  while (stream->Read(&unread)) {
  }
  return FromGrpcStatus(stream->Finish());
}

// One upload of one update, from the header to the last acknowledgement. Segments go in the order
// (round + i) mod n, in frames of at most 512 KiB; those that the aggregator holds are left out.
// Blocks; cancelled when the session ends, the round is committed or the epoch passes. OK: every
// segment is acknowledged. Otherwise the aggregator's status, or Unavailable when it closed the
// stream early.
absl::Status OfferUpdate(const Background& background, Connection* connection,
                         const RoundUpdate& update, EpochId epoch) {
  ClientCall call(background.session, [round = update.round, epoch](const ClientView& view) {
    return view.epoch == epoch && view.next_round <= round;
  });
  call.context()->set_wait_for_ready(true);
  const std::shared_ptr<Connection::Stub> stub = connection->stub();
  const std::unique_ptr<Stream> stream = stub->UploadUpdate(call.context());
  Upload upload(stream.get(), update, background.meter);
  bool complete = false;
  if (upload.SendHeader(background.session->worker(), epoch) && upload.ReadHeld()) {
    const bool sends = upload.left() > 0;
    if (sends) background.meter->BeginUpload(background.clock->MonotonicNow());
    complete = upload.SendSegments() && upload.ReadAcks();
    if (sends) background.meter->EndUpload(background.clock->MonotonicNow(), complete);
  }
  if (upload.late() > 0) {
    background.log->Info("segments were late, they stay in the momentum",
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

// The update alone is refused, not this worker.
bool RefusesTheUpdateOnly(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnauthenticated:
      return false;
    default:
      return true;
  }
}

}  // namespace

Uploader::Uploader(const Background& background, Connection* connection)
    : background_(background),
      connection_(connection),
      backoff_(background.options->backoff, background.session->worker().incarnation() + 1),
      reasons_("upload interrupted", background.log, background.clock) {}

void Uploader::Add(RoundUpdate update) {
  {
    absl::MutexLock lock(&mu_);
    const RoundId round = update.round;
    pending_[round] = Pending{.update = std::move(update), .accepted = EpochId()};
  }
  background_.session->Update([](ClientView&) {});
}

void Uploader::Run() {
  Session* const session = background_.session;
  while (!session->ended()) {
    const ClientView view = session->view();
    const std::optional<RoundUpdate> update = NextOffer(view);
    if (!update.has_value()) {
      session->AwaitChange(view.version, absl::InfiniteDuration());
      continue;
    }
    const absl::Status status = OfferUpdate(background_, connection_, *update, view.epoch);
    if (session->ended()) return;
    Handle(*update, view, status);
  }
}

std::optional<RoundUpdate> Uploader::NextOffer(const ClientView& view) {
  absl::MutexLock lock(&mu_);
  for (auto it = pending_.begin(); it != pending_.end();) {
    auto& [round, pending] = *it;
    const bool over = round < view.next_round || (pending.refused && round < view.head);
    if (!over && pending.accepted != view.epoch) {
      pending.offered = true;
      return pending.update;
    }
    const bool late = pending.refused || !pending.offered;
    if (over && late && pending.accepted == EpochId()) {
      background_.log->Info("update was late, it stays in the momentum",
                            {{"round", round.value()}});
    }
    it = over ? pending_.erase(it) : std::next(it);
  }
  return std::nullopt;
}

bool Uploader::MayBeDamaged(RoundId round, const absl::Status& status) {
  if (ReasonOf(status) != "malformed") return false;
  absl::MutexLock lock(&mu_);
  const auto it = pending_.find(round);
  return it != pending_.end() && ++it->second.malformed < kMaxMalformed;
}

void Uploader::Handle(const RoundUpdate& update, const ClientView& start,
                      const absl::Status& status) {
  const EpochId epoch = start.epoch;
  if (status.ok()) {
    backoff_.Reset();
    reasons_.Succeeded("upload restored");
    absl::MutexLock lock(&mu_);
    if (auto it = pending_.find(update.round); it != pending_.end()) it->second.accepted = epoch;
    return;
  }
  if (MayBeDamaged(update.round, status)) {
    reasons_.Failed(status.ToString());
    background_.meter->AddRetry(RetriedRpc::kUpload, status.code());
    return Await(update.round, start, /*refused=*/false, DelayAfter(status, &backoff_));
  }
  const StatusAction action = ActionFor(status);
  if (action == StatusAction::kEnd || action == StatusAction::kResync) {
    background_.log->Error("update rejected",
                           {{"round", update.round.value()}, {"status", status}});
    if (action == StatusAction::kResync || !RefusesTheUpdateOnly(status))
      background_.session->End(status);
    Forget(update.round);
    return;
  }
  const bool refused = action == StatusAction::kRejoin;
  if (refused) {
    absl::MutexLock lock(&mu_);
    if (auto it = pending_.find(update.round); it != pending_.end()) it->second.refused = true;
  }
  const ClientView view = background_.session->view();
  if (view.next_round > update.round || view.epoch != epoch) return;  // it was cancelled for that
  if (refused) background_.session->WantHead();
  if (!refused) reasons_.Failed(status.ToString());
  background_.meter->AddRetry(RetriedRpc::kUpload, status.code());
  Await(update.round, start, refused, DelayAfter(status, &backoff_));
}

void Uploader::Await(RoundId round, const ClientView& start, bool refused, absl::Duration delay) {
  const absl::Time due = absl::Now() + delay;
  while (true) {
    const ClientView view = background_.session->view();
    const absl::Duration left = due - absl::Now();
    const bool over = view.next_round > round || (refused && view.head > round);
    if (over || view.epoch != start.epoch || view.returns != start.returns) return;
    if (view.opens != start.opens) return;
    if (left <= absl::ZeroDuration()) return;
    if (!background_.session->AwaitChange(view.version, left)) return;
  }
}

void Uploader::Forget(RoundId round) {
  absl::MutexLock lock(&mu_);
  pending_.erase(round);
}

}  // namespace distro
