#include "server/call/upload_call.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro::server {

std::string RejectReason(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (std::ranges::find(kRejectReasons, reason) != kRejectReasons.end()) return reason;
  return status.code() == absl::StatusCode::kInvalidArgument ? "malformed" : "no_session";
}

namespace {

constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::optional<v1::UploadUpdateResponse>> UploadCall::Take(
    const v1::UploadUpdateRequest& request, LimitedStream* stream) {
  Answer answer = Handle(request, stream);
  if (answer.ok()) return answer;
  // A broken stream is not the worker's fault; an invalid message is.
  if (ticket_ && absl::IsInvalidArgument(answer.status())) manager_->CountInvalidUpload(*ticket_);
  return Refused(answer.status());
}

absl::Status UploadCall::Refused(const absl::Status& status) {
  const std::string reason = RejectReason(status);
  observer_->OnUploadRejected(reason);
  absl::Status named = status;
  if (ticket_) named = Annotate(status, absl::StrCat("upload of worker ", ticket_->worker.name()));
  if (!ReasonOf(named).empty()) return named;
  return ErrorWithReason(named.code(), reason, named.message());
}

UploadCall::Answer UploadCall::Handle(const v1::UploadUpdateRequest& request,
                                      LimitedStream* stream) {
  if (manager_ == nullptr) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "not_open",
                           "there is no run yet: it must be created");
  }
  switch (request.message_case()) {
    case v1::UploadUpdateRequest::kHeader:
      return OnHeader(request.header(), stream);
    case v1::UploadUpdateRequest::kFrame:
      return OnFrame(request.frame(), stream);
    case v1::UploadUpdateRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the message is empty or of a kind this version does not know");
}

UploadCall::Answer UploadCall::OnHeader(const v1::UploadHeader& header, LimitedStream* stream) {
  if (ticket_) return absl::InvalidArgumentError("header: comes twice");
  DISTRO_ASSIGN_OR_RETURN(ticket_, manager_->BeginUpload(header));
  if (!std::isfinite(header.loss())) observer_->OnDroppedValues(1);
  stream->Identify(header.worker().name(), header.worker().incarnation());
  DISTRO_RETURN_IF_ERROR(stream->Received(header.ByteSizeLong()));
  abstains_ = header.abstain();
  v1::UploadUpdateResponse response;
  response.mutable_held()->mutable_segments()->Add(ticket_->held.begin(), ticket_->held.end());
  return response;
}

std::string UploadCall::Where() const {
  return absl::StrCat("round ", ticket_->round.value(), ": segment ", segment_.value());
}

// Reserves memory for the payload that starts with this frame.
absl::Status UploadCall::Begin(const v1::UploadFrame& frame) {
  if (segment_.value() >= manager_->layout().segments()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "segment ", segment_.value(), ": the layout has ", manager_->layout().segments()));
  }
  const uint64_t most = manager_->run().method->MaxUpdateBytes(segment_);
  // Larger ones are refused by the assembler, before it reserves anything.
  std::optional<ByteBudget::Share> share = inflight_->Take(std::min(frame.payload_bytes(), most));
  if (!share) {
    return WithRetryAfter(
        ErrorWithReason(absl::StatusCode::kResourceExhausted, "limit",
                        absl::StrCat("uploads in flight use all ", inflight_->limit(),
                                     " bytes of --inflight_bytes_limit")),
        kRetryAfter);
  }
  arriving_.emplace(
      Arriving{.segment = segment_, .payload = PayloadAssembler(most), .share = *std::move(share)});
  return absl::OkStatus();
}

UploadCall::Answer UploadCall::OnFrame(const v1::UploadFrame& frame, LimitedStream* stream) {
  if (!ticket_) return absl::InvalidArgumentError("frame: comes before the header");
  if (abstains_) return absl::InvalidArgumentError("frame: comes after a header that abstains");
  DISTRO_RETURN_IF_ERROR(stream->Received(frame.data().size()));
  segment_ = SegmentId(frame.segment());
  if (!arriving_) DISTRO_RETURN_IF_ERROR(Begin(frame));
  if (segment_ != arriving_->segment) {
    return absl::InvalidArgumentError(absl::StrCat("segment ", segment_.value(),
                                                   ": comes before segment ",
                                                   arriving_->segment.value(), " is complete"));
  }
  PayloadAssembler& payload = arriving_->payload;
  const absl::Duration begin = Clock::Real()->MonotonicNow();
  DISTRO_RETURN_IF_ERROR(
      Annotate(payload.Add(frame.offset(), frame.data(), frame.payload_bytes()), Where()));
  observer_->OnPhase("collect", Clock::Real()->MonotonicNow() - begin);
  observer_->OnReceived(TransferKind::kUpdate, frame.data().size());
  stream->Moved(frame.data().size());
  if (!payload.complete()) return std::nullopt;
  Answer answer = OnPayload(payload.Take(), stream);
  arriving_.reset();
  return answer;
}

UploadCall::Answer UploadCall::OnPayload(std::string bytes, LimitedStream* stream) {
  ReceivedPayload payload(std::make_shared<const std::string>(std::move(bytes)));
  DISTRO_ASSIGN_OR_RETURN(PutResult result, manager_->PreviewPayload(*ticket_, segment_, payload));
  if (result == PutResult::kNew) {
    const absl::Duration begin = Clock::Real()->MonotonicNow();
    const RoundPlace place = {.round = ticket_->round, .segment = segment_};
    DISTRO_RETURN_IF_ERROR(Annotate(
        manager_->run().method->CheckUpdate(*payload.bytes, place, ticket_->step), Where()));
    observer_->OnPhase("validate", Clock::Real()->MonotonicNow() - begin);
    DISTRO_ASSIGN_OR_RETURN(result, manager_->AddPayload(*ticket_, segment_, std::move(payload)));
  }
  if (result == PutResult::kNew) {
    stream->Progress();
  } else if (++repeats_ > manager_->layout().segments()) {
    return WithRetryAfter(
        ErrorWithReason(absl::StatusCode::kResourceExhausted, "limit",
                        absl::StrCat("refused: this stream sent ", repeats_,
                                     " payloads of segments that were held or closed")),
        kRetryAfter);
  }
  if (result == PutResult::kLate) observer_->OnUploadRejected("late");
  v1::UploadUpdateResponse response;
  response.mutable_ack()->set_segment(segment_.value());
  response.mutable_ack()->set_late(result == PutResult::kLate);
  return response;
}

absl::Status UploadCall::End() {
  absl::Status status;
  if (!ticket_) {
    status = absl::InvalidArgumentError("the stream ended before the header");
  } else if (arriving_) {
    status = absl::InvalidArgumentError(absl::StrCat(Where(), ": the stream ended after ",
                                                     arriving_->payload.received(), " bytes"));
  }
  return status.ok() ? status : Refused(status);
}

}  // namespace distro::server
