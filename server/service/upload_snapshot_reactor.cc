#include "server/service/upload_snapshot_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"
#include "server/service/call_checks.h"

namespace distro::server {

UploadSnapshotReactor::UploadSnapshotReactor(grpc::CallbackServerContext* context,
                                             const std::string& caller,
                                             SnapshotTransfers* snapshots, StreamLimiter* limiter,
                                             TransferObserver* observer,
                                             ConnectionTable* connections, Log* log)
    : snapshots_(snapshots),
      observer_(observer),
      connections_(connections),
      endpoint_(EndpointOfGrpcPeer(context->peer())),
      log_(log) {
  auto stream = limiter->Open(StreamKind::kSnapshot,
                              [context](const absl::Status& /*stalled*/) { context->TryCancel(); });
  if (stream.ok()) {
    stream_ = *std::move(stream);
    if (!caller.empty()) stream_->Identify(caller, 0);
    Read();
  } else {
    End(stream.status());
  }
}

void UploadSnapshotReactor::Read() {
  stream_->ResumeTimeout();
  StartRead(&message_);
}

void UploadSnapshotReactor::Write(const v1::UploadSnapshotResponse& response) {
  answer_ = SerializeMessage(response);
  stream_->ResumeTimeout();
  StartWrite(&answer_);
}

void UploadSnapshotReactor::End(const absl::Status& status) {
  Finish(ToGrpcStatus(ForCaller(status, "store a snapshot", log_)));
}

void UploadSnapshotReactor::OnReadDone(bool ok) {
  stream_->PauseTimeout();
  if (!ok) {
    return End(
        absl::CancelledError("the upload ended before the snapshot was complete: start it again, "
                             "it resumes where it stopped"));
  }
  connections_->OnMessage(endpoint_, message_.Length());
  v1::UploadSnapshotRequest request;
  absl::Status status = ParseMessage(message_, &request);
  message_.Clear();
  if (status.ok()) status = Handle(request);
  if (!status.ok()) return End(status);
  Proceed();
}

absl::Status UploadSnapshotReactor::Handle(const v1::UploadSnapshotRequest& request) {
  if (snapshots_ == nullptr) return NoRun();
  switch (request.message_case()) {
    case v1::UploadSnapshotRequest::kHeader:
      return OnHeader(request.header());
    case v1::UploadSnapshotRequest::kFrame:
      return OnFrame(request.frame());
    case v1::UploadSnapshotRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the message is empty or of a kind this version does not know");
}

absl::Status UploadSnapshotReactor::OnHeader(const v1::UploadSnapshotHeader& header) {
  if (ticket_) return absl::InvalidArgumentError("header: comes twice");
  DISTRO_ASSIGN_OR_RETURN(ticket_, snapshots_->Begin(header));
  return absl::OkStatus();
}

absl::Status UploadSnapshotReactor::OnFrame(const v1::SnapshotFrame& frame) {
  if (!ticket_) return absl::InvalidArgumentError("frame: comes before the header");
  if (frame.data().size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: ", frame.data().size(), " bytes, more than ", kMaxFrameBytes));
  }
  observer_->OnReceived(TransferKind::kSnapshot, frame.data().size());
  stream_->Moved(frame.data().size());
  return snapshots_->Add(&*ticket_, frame);
}

void UploadSnapshotReactor::Proceed() {
  v1::UploadSnapshotResponse response;
  if (!offset_told_ && !ticket_->stored) {
    offset_told_ = true;
    response.set_offset(ticket_->offset);
    return Write(response);
  }
  if (!ticket_->complete()) return Read();
  if (ticket_->stored) {
    verdict_told_ = true;
    *response.mutable_stored() = ticket_->snapshot;
    return Write(response);
  }
  snapshots_->Adopt(*ticket_, [this](absl::Status status) {
    if (!status.ok()) return End(status);
    ticket_->stored = true;
    Proceed();
  });
}

void UploadSnapshotReactor::OnWriteDone(bool ok) {
  stream_->PauseTimeout();
  if (!ok) return End(absl::CancelledError("the sender is gone"));
  if (verdict_told_) return End(absl::OkStatus());
  Proceed();
}

}  // namespace distro::server
