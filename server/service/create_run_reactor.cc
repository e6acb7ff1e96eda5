#include "server/service/create_run_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/net/wire/frames.h"
#include "server/service/call_checks.h"

namespace distro::server {

CreateRunReactor::CreateRunReactor(grpc::CallbackServerContext* context, const std::string& caller,
                                   RunHost* host, StreamLimiter* limiter,
                                   TransferObserver* observer, ConnectionTable* connections,
                                   Log* log)
    : AnsweringReactor(context, connections), host_(host), observer_(observer), log_(log) {
  (void)Begin(limiter, StreamKind::kSnapshot, caller);  // an error has ended the stream
}

absl::Status CreateRunReactor::OnMessage(const v1::CreateRunRequest& request) {
  return ForCaller(Handle(request), "create the run", log_);
}

absl::Status CreateRunReactor::Handle(const v1::CreateRunRequest& request) {
  if (created_) return absl::InvalidArgumentError("the run exists: no further message is expected");
  switch (request.message_case()) {
    case v1::CreateRunRequest::kHeader:
      return OnHeader(request.header());
    case v1::CreateRunRequest::kFrame:
      return OnFrame(request.frame());
    case v1::CreateRunRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the message is empty or of a kind this version does not know");
}

absl::Status CreateRunReactor::OnHeader(const v1::CreateRunHeader& header) {
  if (header_) return absl::InvalidArgumentError("header: comes twice");
  DISTRO_ASSIGN_OR_RETURN(v1::CreateRunResponse response, host_->BeginCreate(header));
  header_ = header;
  created_ = response.has_run_id();
  Answer(std::move(response));
  return absl::OkStatus();
}

absl::Status CreateRunReactor::OnFrame(const v1::SnapshotFrame& frame) {
  if (!header_) return absl::InvalidArgumentError("frame: comes before the header");
  if (frame.data().size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: ", frame.data().size(), " bytes, more than ", kMaxFrameBytes));
  }
  observer_->OnReceived(TransferKind::kSnapshot, frame.data().size());
  stream()->Moved(frame.data().size());
  DISTRO_ASSIGN_OR_RETURN(std::optional<v1::CreateRunResponse> response,
                          host_->AddFrame(*header_, frame));
  if (!response) return absl::OkStatus();
  created_ = true;
  Answer(*std::move(response));
  return absl::OkStatus();
}

absl::Status CreateRunReactor::OnHalfClose() {
  if (created_) return absl::OkStatus();
  return absl::CancelledError(
      "the upload ended before the run was complete: start it again, it resumes where it stopped");
}

}  // namespace distro::server
