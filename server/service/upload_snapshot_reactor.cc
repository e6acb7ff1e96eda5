#include "server/service/upload_snapshot_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frames.h"

namespace distro::server {

UploadSnapshotReactor::UploadSnapshotReactor(SnapshotDesk* desk, TransferObserver* observer)
    : desk_(desk), observer_(observer) {
  StartRead(&request_);
}

void UploadSnapshotReactor::OnReadDone(bool ok) {
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
  return desk_->Add(&*ticket_, frame);
}

void UploadSnapshotReactor::Proceed() {
  if (!offset_told_ && !ticket_->stored) {
    offset_told_ = true;
    response_.set_offset(ticket_->offset);
    return StartWrite(&response_);
  }
  if (!ticket_->complete()) return StartRead(&request_);
  if (ticket_->stored) {
    *response_.mutable_stored() = ticket_->snapshot;
    return StartWrite(&response_);
  }
  desk_->Adopt(*ticket_, [this](absl::Status status) {
    if (!status.ok()) return End(status);
    ticket_->stored = true;
    Proceed();
  });
}

void UploadSnapshotReactor::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the sender is gone"));
  if (response_.has_stored()) return End(absl::OkStatus());
  Proceed();
}

}  // namespace distro::server
