#include "common/client/member/heartbeat.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/client/backoff.h"
#include "common/client/follow/round_feed.h"
#include "common/client/status_action.h"
#include "common/rpc/status.h"

namespace distro {
namespace {

// The last attempt of a time that is over.
constexpr absl::Duration kShortestWait = absl::Seconds(1);

}  // namespace

absl::StatusOr<v1::JoinResponse> JoinOnce(const Background& background, Connection* connection,
                                          const v1::JoinRequest& asked, absl::Duration wait) {
  v1::JoinRequest request = asked;
  // Who follows the log has nothing to catch up with, whatever its link once was.
  if (!background.session->view().following)
    request.set_download_bytes_per_second(background.meter->download_bytes_per_second());
  v1::JoinResponse response;
  ClientCall call(background.session);
  const absl::Duration limit = background.options->rpc_timeout;
  const bool waits = wait > absl::ZeroDuration();
  call.context()->set_wait_for_ready(waits);
  call.context()->set_deadline(
      absl::ToChronoTime(absl::Now() + (waits ? std::min(wait, limit) : limit)));
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
                                                   const v1::JoinRequest& request,
                                                   FirstContact* contact) {
  Session* const session = background.session;
  Backoff backoff(background.options->backoff, session->worker().incarnation());
  const auto wanted = [session] { return !session->ended(); };
  absl::Duration wait = absl::ZeroDuration();
  contact->Begin();
  while (true) {
    absl::StatusOr<v1::JoinResponse> response = JoinOnce(background, connection, request, wait);
    if (session->ended()) return session->end_status();
    if (response.ok()) contact->Answered();
    if (response.ok()) return response;
    const absl::Status& status = response.status();
    const bool may_pass = ActionFor(status) == StatusAction::kRetry;
    if (may_pass) background.meter->AddRetry(RetriedRpc::kJoin, status.code());
    const absl::Status end =
        may_pass ? contact->Failed(status, wanted) : contact->Explained(status, wanted);
    if (session->ended()) return session->end_status();
    DISTRO_RETURN_IF_ERROR(end);
    if (!session->Sleep(std::min(DelayAfter(status, &backoff), contact->Left())))
      return session->end_status();
    wait = std::max(contact->Left(), kShortestWait);
  }
}

Heartbeat::Heartbeat(const Background& background, Connection* connection, absl::Duration interval)
    : background_(background),
      connection_(connection),
      interval_(interval),
      reasons_("aggregator unreachable", background.log, background.clock) {
  *next_.mutable_worker() = background.session->worker();
}

void Heartbeat::Report(RoundId next_round, uint64_t log_hash) {
  const bool caught_up = next_round >= background_.session->view().head;
  bool news = false;
  {
    absl::MutexLock lock(&mu_);
    news = caught_up && !caught_up_;
    caught_up_ = caught_up;
    next_.set_next_round(next_round.value());
    next_.set_log_hash(log_hash);
  }
  if (news) background_.session->WantHead();
}

void Heartbeat::Run() {
  Session* const session = background_.session;
  Backoff backoff(background_.options->backoff, ~session->worker().incarnation());
  while (!session->ended()) {
    const absl::StatusOr<v1::HeartbeatResponse> response = Send();
    if (session->ended()) return;
    absl::Status status = response.status();
    if (response.ok()) Obey(*response);
    if (response.ok() && response->directive() != v1::DIRECTIVE_REJOIN) {
      backoff.Reset();
      if (!AwaitTurn()) return;
      continue;
    }
    if (response.ok() || ActionFor(status) == StatusAction::kRejoin) {
      status = Rejoin();
    } else {
      Failed(RetriedRpc::kHeartbeat, status);
    }
    const absl::Duration asked = RetryAfterOf(status).value_or(absl::ZeroDuration());
    session->Sleep(asked + std::min(interval_, backoff.Next()));
  }
}

bool Heartbeat::AwaitTurn() {
  const absl::Time due = absl::Now() + interval_;
  while (true) {
    const ClientView view = background_.session->view();
    const absl::Duration left = due - absl::Now();
    if (view.head_wanted || left <= absl::ZeroDuration()) return !background_.session->ended();
    if (!background_.session->AwaitChange(view.version, left)) return false;
  }
}

absl::StatusOr<v1::HeartbeatResponse> Heartbeat::Send() {
  v1::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mu_);
    next_.set_sequence(next_.sequence() + 1);
    request = next_;
  }
  v1::HeartbeatResponse response;
  ClientCall call(background_.session);
  // While nobody waits for a connection nobody polls it, and gRPC would look for it every 5 s only.
  call.context()->set_wait_for_ready(failing_);
  call.context()->set_deadline(absl::ToChronoTime(absl::Now() + background_.options->rpc_timeout));
  request.set_epoch(background_.session->view().epoch.value());
  if (background_.options->telemetry)
    *request.mutable_telemetry() = background_.options->telemetry();
  const absl::Duration begin = background_.clock->MonotonicNow();
  absl::Status status =
      FromGrpcStatus(connection_->stub()->Heartbeat(call.context(), request, &response));
  if (const EpochId epoch(response.epoch()), newest(request.epoch()); status.ok() && epoch < newest)
    status = FencedError(epoch, newest);
  connection_->Heed(status);
  DISTRO_RETURN_IF_ERROR(status);
  background_.meter->AddControl(request.ByteSizeLong(), response.ByteSizeLong());
  // What waited for a connection tells nothing of the link.
  if (!failing_) {
    background_.meter->AddHeartbeat(background_.clock->MonotonicNow() - begin,
                                    background_.clock->WallNow());
  }
  reasons_.Succeeded("aggregator reachable again");
  return response;
}

void Heartbeat::Obey(const v1::HeartbeatResponse& response) {
  background_.session->ObserveHead(EpochId(response.epoch()), RoundId(response.head_round()));
  if (failing_) background_.session->Update([](ClientView& view) { ++view.returns; });
  failing_ = false;
  LogRunState(response);
  ObeyDirective(response);
  ReopenIfSilent(background_.follower(), background_.options->subscription_patience);
}

void Heartbeat::ObeyDirective(const v1::HeartbeatResponse& response) {
  Session* const session = background_.session;
  const std::string& name = session->worker().name();
  const auto end = [session](absl::StatusCode code, absl::string_view reason,
                             absl::string_view message) {
    session->End(ErrorWithReason(code, reason, message));
  };
  switch (response.directive()) {
    case v1::DIRECTIVE_REPLACED:
      return end(absl::StatusCode::kAborted, "replaced",
                 absl::StrCat("a newer process has the name ", name));
    case v1::DIRECTIVE_QUARANTINED:
      return end(absl::StatusCode::kPermissionDenied, "quarantined", response.reason());
    case v1::DIRECTIVE_RESYNC:
      // It is about parameters that this session follows the log with.
      if (!session->view().following) return;
      return end(absl::StatusCode::kFailedPrecondition, "diverged", response.reason());
    default:
      return;
  }
}

void Heartbeat::LogRunState(const v1::HeartbeatResponse& response) {
  const bool drain = response.directive() == v1::DIRECTIVE_DRAIN;
  if (drain && !draining_) {
    background_.log->Info("aggregator is about to stop; waiting for it to come back",
                          {{"reason", response.reason()}});
  }
  draining_ = drain;
  const bool paused = response.run_state() == v1::RUN_STATE_PAUSED;
  if (paused && !paused_) {
    background_.log->Info("the run is paused; waiting for distroctl run resume",
                          {{"round", response.head_round()}, {"reason", response.reason()}});
  }
  if (paused_ && !paused) background_.log->Info("the run goes on");
  paused_ = paused;
}

absl::Status Heartbeat::Rejoin() {
  Session* const session = background_.session;
  const absl::StatusOr<v1::JoinResponse> response =
      JoinOnce(background_, connection_, session->RejoinRequest());
  if (!response.ok()) {
    Failed(RetriedRpc::kJoin, response.status());
    return response.status();
  }
  if (absl::Status same = session->CheckSameRun(*response); !same.ok()) {
    session->End(same);
    return same;
  }
  background_.log->Info("joined again",
                        {{"run", response->run_id()}, {"epoch", response->epoch()}});
  session->Update([&](ClientView& view) {
    view.epoch = std::max(view.epoch, EpochId(response->epoch()));
    view.head = RoundId(response->head_round());
    view.head_wanted = true;  // a new session does not know yet what this worker has
    ++view.returns;
  });
  failing_ = false;
  return absl::OkStatus();
}

void Heartbeat::Failed(RetriedRpc rpc, const absl::Status& status) {
  if (background_.session->ended()) return;
  if (ActionFor(status) != StatusAction::kRetry) {
    background_.session->End(status);
    return;
  }
  failing_ = true;
  background_.meter->AddRetry(rpc, status.code());
  reasons_.Failed(status.ToString());
}

}  // namespace distro
