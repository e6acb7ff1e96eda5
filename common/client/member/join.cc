#include "common/client/member/join.h"

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/reason_log.h"
#include "common/base/status_macros.h"
#include "common/client/backoff.h"
#include "common/client/status_action.h"
#include "common/rpc/status.h"

namespace distro {

absl::StatusOr<v1::JoinResponse> JoinOnce(const Background& background, Connection* connection,
                                          const v1::JoinRequest& asked, bool wait_for_ready) {
  v1::JoinRequest request = asked;
  // Who follows the log has nothing to catch up with, whatever its link once was.
  if (!background.session->view().following)
    request.set_download_bytes_per_second(background.meter->download_bytes_per_second());
  v1::JoinResponse response;
  ClientCall call(background.session);
  call.context()->set_wait_for_ready(wait_for_ready);
  call.context()->set_deadline(absl::ToChronoTime(absl::Now() + background.options->rpc_timeout));
  absl::Status status =
      FromGrpcStatus(connection->stub()->Join(call.context(), request, &response));
  const bool replaced = response.run_id() == request.run_id() && response.epoch() < request.epoch();
  if (status.ok() && replaced)
    status = FencedError(EpochId(response.epoch()), EpochId(request.epoch()));
  connection->Heed(status);
  if (status.ok()) background.meter->AddControl(request.ByteSizeLong(), response.ByteSizeLong());
  DISTRO_RETURN_IF_ERROR(status);
  return response;
}

absl::StatusOr<v1::JoinResponse> JoinUntilAnswered(const Background& background,
                                                   Connection* connection,
                                                   const v1::JoinRequest& request) {
  Session* const session = background.session;
  Backoff backoff(background.options->backoff, session->worker().incarnation());
  ReasonLog reasons("waiting for the aggregator", background.log, background.clock);
  bool failed = false;
  while (true) {
    absl::StatusOr<v1::JoinResponse> response = JoinOnce(background, connection, request, failed);
    failed = true;
    if (session->ended()) return session->end_status();
    if (response.ok() || ActionFor(response.status()) != StatusAction::kRetry) return response;
    background.meter->AddRetry(RetriedRpc::kJoin, response.status().code());
    reasons.Failed(response.status().ToString());
    if (!session->Sleep(DelayAfter(response.status(), &backoff))) return session->end_status();
  }
}

}  // namespace distro
