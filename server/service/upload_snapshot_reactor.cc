#include "server/service/upload_snapshot_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/rpc/frames.h"
#include "common/rpc/status.h"
#include "server/service/disk_error.h"

namespace distro::server {

UploadSnapshotReactor::UploadSnapshotReactor(grpc::CallbackServerContext* context,
                                             SnapshotDesk* desk, StreamGate* gate,
                                             TransferObserver* observer, Log* log)
    : desk_(desk), observer_(observer), log_(log) {
  auto stream = gate->Open(StreamKind::kSnapshot,
                           [context](const absl::Status& /*stalled*/) { context->TryCancel(); });
  if (stream.ok()) {
    stream_ = *std::move(stream);
    Read();
  } else {
    End(stream.status());
  }
}

void UploadSnapshotReactor::Read() {
  stream_->Wait();
  StartRead(&request_);
}

void UploadSnapshotReactor::Write() {
  stream_->Wait();
  StartWrite(&response_);
}

void UploadSnapshotReactor::End(const absl::Status& status) {
  Finish(ToGrpcStatus(ReasonOf(status) == "disk" ? WithoutPath(status, "store a snapshot", log_)
                                                 : status));
}

void UploadSnapshotReactor::OnReadDone(bool ok) {
  stream_->Work();
  if (!ok) {
    return End(absl::CancelledError(
        "the upload ended before the snapshot was complete: begin again, it goes on where it was"));
  }
  if (const absl::Status status = Handle(); !status.ok()) return End(status);
  Proceed();
}

absl::Status UploadSnapshotReactor::Handle() {
  if (desk_ == nullptr) return absl::UnavailableError("there is no run yet: it must be created");
  switch (request_.message_case()) {
    case v1::UploadSnapshotRequest::kHeader:
      return OnHeader(request_.header());
    case v1::UploadSnapshotRequest::kFrame:
      return OnFrame(request_.frame());
    case v1::UploadSnapshotRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the message is empty or of a kind this version does not know");
}

absl::Status UploadSnapshotReactor::OnHeader(const v1::UploadSnapshotHeader& header) {
  if (ticket_) return absl::InvalidArgumentError("header: comes twice");
  DISTRO_ASSIGN_OR_RETURN(ticket_, desk_->Begin(header));
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
  return desk_->Add(&*ticket_, frame);
}

void UploadSnapshotReactor::Proceed() {
  if (!offset_told_ && !ticket_->stored) {
    offset_told_ = true;
    response_.set_offset(ticket_->offset);
    return Write();
  }
  if (!ticket_->complete()) return Read();
  if (ticket_->stored) {
    *response_.mutable_stored() = ticket_->snapshot;
    return Write();
  }
  desk_->Adopt(*ticket_, [this](absl::Status status) {
    if (!status.ok()) return End(status);
    ticket_->stored = true;
    Proceed();
  });
}

void UploadSnapshotReactor::OnWriteDone(bool ok) {
  stream_->Work();
  if (!ok) return End(absl::CancelledError("the sender is gone"));
  if (response_.has_stored()) return End(absl::OkStatus());
  Proceed();
}

}  // namespace distro::server
