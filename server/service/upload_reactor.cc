#include "server/service/upload_reactor.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/payload.h"
#include "server/round/reject.h"

namespace distro::server {

UploadReactor::UploadReactor(RoundManager* manager, TransferObserver* observer)
    : manager_(manager), observer_(observer) {
  Begin();
}

absl::Status UploadReactor::OnMessage(const v1::UploadUpdateRequest& request) {
  absl::Status status = Handle(request);
  if (status.ok()) return status;
  observer_->OnUploadRejected(RejectReason(status));
  if (!ticket_) return status;
  return Annotate(status, absl::StrCat("upload of worker ", ticket_->worker.name()));
}

absl::Status UploadReactor::Handle(const v1::UploadUpdateRequest& request) {
  if (manager_ == nullptr) return absl::UnavailableError("there is no run yet: it must be created");
  switch (request.message_case()) {
    case v1::UploadUpdateRequest::kHeader:
      return OnHeader(request.header());
    case v1::UploadUpdateRequest::kFrame:
      return OnFrame(request.frame());
    case v1::UploadUpdateRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the message is empty or of a kind this version does not know");
}

absl::Status UploadReactor::OnHeader(const v1::UploadHeader& header) {
  if (ticket_) return absl::InvalidArgumentError("header: comes twice");
  DISTRO_ASSIGN_OR_RETURN(ticket_, manager_->BeginUpload(header));
  abstains_ = header.abstain();
  v1::UploadUpdateResponse response;
  response.mutable_held()->mutable_segments()->Add(ticket_->held.begin(), ticket_->held.end());
  Answer(std::move(response));
  return absl::OkStatus();
}

absl::Status UploadReactor::OnFrame(const v1::UploadFrame& frame) {
  if (!ticket_) return absl::InvalidArgumentError("frame: comes before the header");
  if (abstains_) return absl::InvalidArgumentError("frame: comes after a header that abstains");
  const SegmentId segment(frame.segment());
  if (segment.value() >= manager_->layout().segments()) {
    return absl::InvalidArgumentError(absl::StrCat("segment ", segment.value(), ": the layout has ",
                                                   manager_->layout().segments()));
  }
  if (!payload_) {
    const PayloadExpectation expected = manager_->Expectation(ticket_->round, segment);
    payload_.emplace(MaxUpdatePayloadBytes(expected.blocks, expected.k));
    segment_ = segment;
  }
  if (segment != segment_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "segment ", segment.value(), ": comes before segment ", segment_.value(), " is complete"));
  }
  const std::string where =
      absl::StrCat("round ", ticket_->round.value(), ": segment ", segment.value());
  DISTRO_RETURN_IF_ERROR(
      Annotate(payload_->Add(frame.offset(), frame.data(), frame.payload_bytes()), where));
  observer_->OnReceived(TransferKind::kUpdate, frame.data().size());
  if (!payload_->complete()) return absl::OkStatus();
  std::string payload = payload_->Take();
  payload_.reset();
  return OnPayload(segment, std::move(payload));
}

absl::Status UploadReactor::OnPayload(SegmentId segment, std::string payload) {
  const std::string where =
      absl::StrCat("round ", ticket_->round.value(), ": segment ", segment.value());
  DISTRO_RETURN_IF_ERROR(
      Annotate(ValidateUpdate(payload, manager_->Expectation(ticket_->round, segment)), where));
  DISTRO_ASSIGN_OR_RETURN(
      const Taken taken,
      manager_->AddPayload(*ticket_, segment,
                           std::make_shared<const std::string>(std::move(payload))));
  if (taken == Taken::kLate) observer_->OnUploadRejected("late");
  v1::UploadUpdateResponse response;
  response.mutable_ack()->set_segment(segment.value());
  response.mutable_ack()->set_late(taken == Taken::kLate);
  Answer(std::move(response));
  return absl::OkStatus();
}

absl::Status UploadReactor::OnHalfClose() {
  if (!ticket_) return absl::InvalidArgumentError("the stream ended before the header");
  if (!payload_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("round ", ticket_->round.value(), ": segment ",
                                                 segment_.value(), ": the stream ended after ",
                                                 payload_->received(), " bytes"));
}

}  // namespace distro::server
