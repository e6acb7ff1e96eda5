#include "server/service/upload_reactor.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "server/call/upload_call.h"

namespace distro::server {

UploadReactor::UploadReactor(grpc::CallbackServerContext* context, Caller caller,
                             RoundManager* manager, StreamLimiter* limiter,
                             TransferObserver* observer, ConnectionTable* connections)
    : AnsweringReactor(context, connections),
      caller_(std::move(caller)),
      observer_(observer),
      call_(manager, limiter->inflight(), observer) {
  if (absl::Status status = Begin(limiter, StreamKind::kUpload); !status.ok()) OnStopped(status);
}

absl::Status UploadReactor::OnMessage(const v1::UploadUpdateRequest& request) {
  if (request.has_header())
    DISTRO_RETURN_IF_ERROR(caller_.MayActAs(request.header().worker().name()));
  DISTRO_ASSIGN_OR_RETURN(std::optional<v1::UploadUpdateResponse> answer,
                          call_.Take(request, stream()));
  if (answer) Answer(*answer);
  return absl::OkStatus();
}

// Being replaced by another stream of the worker is not counted as a refusal.
void UploadReactor::OnStopped(const absl::Status& status) {
  if (absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status))
    observer_->OnUploadRejected(RejectReason(status));
}

}  // namespace distro::server
