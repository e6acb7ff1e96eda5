#include "common/client/member/heartbeat.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/epoch.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/client/await_call.h"
#include "common/client/backoff.h"
#include "common/client/follow/round_feed.h"
#include "common/client/status_action.h"

namespace distro {

absl::StatusOr<v1::JoinResponse> JoinOnce(const SessionContext& context, Connection* connection,
                                          const v1::JoinRequest& asked, absl::Duration wait) {
  v1::JoinRequest request = asked;
  // A worker that follows the log is not catching up: its earlier rate does not matter.
  if (!context.state->view().following)
    request.set_download_bytes_per_second(context.meter->download_bytes_per_second());
  v1::JoinResponse response;
  ClientCall call(context.state);
  const absl::Duration limit = context.options->rpc_timeout;
  const bool waits = wait > absl::ZeroDuration();
  call.context()->set_wait_for_ready(waits);
  const std::shared_ptr<Connection::Stub> stub = connection->stub();
  absl::Status status =
      AwaitCall(call.context(), waits ? std::min(wait, limit) : limit, [&](AnswerTaker done) {
        stub->async()->Join(call.context(), &request, &response, std::move(done));
      });
  // Epochs of different runs do not compare.
  const EpochId newest(response.run_id() == request.run_id() ? request.epoch() : 0);
  if (status.ok()) status = CheckEpoch(EpochId(response.epoch()), newest, context.clock->WallNow());
  connection->Heed(status);
  if (status.ok()) context.meter->AddControl(request.ByteSizeLong(), response.ByteSizeLong());
  DISTRO_RETURN_IF_ERROR(status);
  return response;
}

absl::StatusOr<v1::JoinResponse> JoinUntilAnswered(const SessionContext& context,
                                                   Connection* connection,
                                                   const v1::JoinRequest& request,
                                                   FirstContact* contact) {
  MemberState* const state = context.state;
  Backoff backoff(context.options->backoff, state->worker().incarnation());
  const auto wanted = [state] { return !state->ended(); };
  absl::Duration wait = absl::ZeroDuration();
  contact->Begin();
  while (true) {
    absl::StatusOr<v1::JoinResponse> response = JoinOnce(context, connection, request, wait);
    if (state->ended()) return state->end_status();
    if (response.ok()) contact->Answered();
    if (response.ok()) return response;
    const absl::Status& status = response.status();
    const bool may_pass = ActionFor(status) == StatusAction::kRetry;
    if (may_pass) context.meter->AddRetry(RetriedRpc::kJoin, status.code());
    const absl::Status end =
        may_pass ? contact->Failed(status, wanted) : contact->Explained(status, wanted);
    if (state->ended()) return state->end_status();
    DISTRO_RETURN_IF_ERROR(end);
    if (!state->Sleep(std::min(DelayAfter(status, &backoff), contact->Left())))
      return state->end_status();
    wait = contact->ConnectionWait();
  }
}

Heartbeat::Heartbeat(const SessionContext& context, Connection* connection, absl::Duration interval)
    : context_(context),
      connection_(connection),
      interval_(interval),
      reasons_("aggregator unreachable", context.log, context.clock) {
  *next_.mutable_worker() = context.state->worker();
}

void Heartbeat::Report(RoundId next_round, uint64_t log_hash) {
  const bool caught_up = next_round >= context_.state->view().head;
  bool news = false;
  {
    absl::MutexLock lock(&mu_);
    news = caught_up && !caught_up_;
    caught_up_ = caught_up;
    next_.set_next_round(next_round.value());
    next_.set_log_hash(log_hash);
  }
  if (news) context_.state->WantHead();
}

void Heartbeat::Run() {
  MemberState* const state = context_.state;
  Backoff backoff(context_.options->backoff, ~state->worker().incarnation());
  while (!state->ended()) {
    const absl::StatusOr<v1::HeartbeatResponse> response = Send();
    if (state->ended()) return;
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
    state->Sleep(asked + std::min(interval_, backoff.Next()));
  }
}

bool Heartbeat::AwaitTurn() {
  return context_.state->Await(interval_, [](const ClientView& view) { return view.head_wanted; });
}

absl::StatusOr<v1::HeartbeatResponse> Heartbeat::Send() {
  v1::HeartbeatRequest request;
  {
    absl::MutexLock lock(&mu_);
    next_.set_sequence(next_.sequence() + 1);
    request = next_;
  }
  v1::HeartbeatResponse response;
  ClientCall call(context_.state);
  call.context()->set_wait_for_ready(failing_);
  const EpochId seen = context_.state->view().epoch;
  request.set_epoch(KeptEpoch(seen, context_.clock->WallNow()).value());
  if (context_.options->telemetry) *request.mutable_telemetry() = context_.options->telemetry();
  const absl::Duration begin = context_.clock->MonotonicNow();
  const std::shared_ptr<Connection::Stub> stub = connection_->stub();
  absl::Status status =
      AwaitCall(call.context(), context_.options->rpc_timeout, [&](AnswerTaker done) {
        stub->async()->Heartbeat(call.context(), &request, &response, std::move(done));
      });
  if (status.ok()) {
    status = CheckEpoch(EpochId(response.epoch()), seen, context_.clock->WallNow());
  }
  connection_->Heed(status);
  DISTRO_RETURN_IF_ERROR(status);
  context_.meter->AddControl(request.ByteSizeLong(), response.ByteSizeLong());
  // The time of a call that waited for a connection says nothing about the link.
  if (!failing_) {
    const absl::Duration now = context_.clock->MonotonicNow();
    context_.meter->AddHeartbeat(now - begin, now, context_.clock->WallNow());
  }
  reasons_.Succeeded("aggregator reachable again");
  return response;
}

void Heartbeat::Obey(const v1::HeartbeatResponse& response) {
  context_.state->ObserveHead(EpochId(response.epoch()), RoundId(response.head_round()));
  if (failing_) context_.state->Update([](ClientView& view) { ++view.returns; });
  failing_ = false;
  LogRunState(response);
  ObeyDirective(response);
  ReopenIfSilent(context_.follower(), context_.options->subscription_patience);
}

void Heartbeat::ObeyDirective(const v1::HeartbeatResponse& response) {
  MemberState* const state = context_.state;
  const std::string& name = state->worker().name();
  const auto end = [state](absl::StatusCode code, absl::string_view reason,
                           absl::string_view message) {
    state->End(ErrorWithReason(code, reason, message));
  };
  switch (response.directive()) {
    case v1::DIRECTIVE_REPLACED:
      return end(absl::StatusCode::kAborted, "replaced",
                 absl::StrCat("a newer process has joined with the name ", name));
    case v1::DIRECTIVE_QUARANTINED:
      return end(absl::StatusCode::kPermissionDenied, "quarantined", ShownText(response.reason()));
    case v1::DIRECTIVE_RESYNC:
      // Concerns the parameters with which this session follows the log.
      if (!state->view().following) return;
      return end(absl::StatusCode::kFailedPrecondition, "diverged", ShownText(response.reason()));
    default:
      return;
  }
}

void Heartbeat::LogRunState(const v1::HeartbeatResponse& response) {
  const bool drain = response.directive() == v1::DIRECTIVE_DRAIN;
  if (drain && !draining_) {
    context_.log->Info("aggregator is about to stop; waiting for it to come back",
                       {{"reason", ShownText(response.reason())}});
  }
  draining_ = drain;
  const bool paused = response.run_state() == v1::RUN_STATE_PAUSED;
  if (paused && !paused_) {
    context_.log->Info(
        "the run is paused; waiting for distroctl run resume",
        {{"round", response.head_round()}, {"reason", ShownText(response.reason())}});
  }
  if (paused_ && !paused) context_.log->Info("the run continues");
  paused_ = paused;
}

absl::Status Heartbeat::Rejoin() {
  MemberState* const state = context_.state;
  const absl::StatusOr<v1::JoinResponse> response =
      JoinOnce(context_, connection_, state->RejoinRequest());
  if (!response.ok()) {
    Failed(RetriedRpc::kJoin, response.status());
    return response.status();
  }
  if (absl::Status same = state->CheckSameRun(*response); !same.ok()) {
    state->End(same);
    return same;
  }
  context_.log->Info("joined again", {{"run", response->run_id()}, {"epoch", response->epoch()}});
  state->Update([&](ClientView& view) {
    view.epoch = NewestEpoch(view.epoch, EpochId(response->epoch()), context_.clock->WallNow());
    view.head = RoundId(response->head_round());
    view.head_wanted = true;  // the new session does not know this worker's round yet
    ++view.returns;
  });
  failing_ = false;
  return absl::OkStatus();
}

void Heartbeat::Failed(RetriedRpc rpc, const absl::Status& status) {
  if (context_.state->ended()) return;
  if (ActionFor(status) != StatusAction::kRetry) {
    context_.state->End(status);
    return;
  }
  failing_ = true;
  context_.meter->AddRetry(rpc, status.code());
  reasons_.Failed(status.ToString());
}

}  // namespace distro
