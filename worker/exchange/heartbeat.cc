#include "worker/exchange/heartbeat.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "worker/exchange/retry.h"

namespace distro::worker {

Heartbeat::Heartbeat(const Background& background, v1::AggregatorService::StubInterface* stub,
                     absl::Duration interval)
    : background_(background),
      stub_(stub),
      interval_(interval),
      reasons_("aggregator unreachable", background.log, background.clock) {
  *next_.mutable_worker() = background.session->worker();
}

void Heartbeat::Report(RoundId next_round, uint64_t log_hash,
                       const v1::WorkerTelemetry* telemetry) {
  const bool caught_up = next_round >= background_.session->view().head;
  bool news = false;
  {
    absl::MutexLock lock(&mu_);
    news = caught_up && !caught_up_;
    caught_up_ = caught_up;
    next_.set_next_round(next_round.value());
    next_.set_log_hash(log_hash);
    if (telemetry != nullptr) *next_.mutable_telemetry() = *telemetry;
  }
  if (news) background_.session->WantHeartbeat();
}

void Heartbeat::Run() {
  Backoff backoff(background_.options->backoff, ~background_.session->worker().incarnation());
  while (!background_.session->ended()) {
    const absl::StatusOr<v1::HeartbeatResponse> response = Send();
    if (background_.session->ended()) return;
    if (response.ok()) Obey(*response);
    if (response.ok() && response->directive() != v1::DIRECTIVE_REJOIN) {
      backoff.Reset();
      if (!AwaitTurn()) return;
      continue;
    }
    if (response.ok() || response.status().code() == absl::StatusCode::kFailedPrecondition) {
      Rejoin();
    } else if (!MayRetry(response.status())) {
      return;
    }
    background_.session->Sleep(std::min(interval_, backoff.Next()));
  }
}

bool Heartbeat::AwaitTurn() {
  const absl::Time due = absl::Now() + interval_;
  while (true) {
    const SessionView view = background_.session->view();
    const absl::Duration left = due - absl::Now();
    if (view.heartbeat_wanted || left <= absl::ZeroDuration()) return !background_.session->ended();
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
  SessionCall call(background_.session);
  call.context()->set_deadline(absl::ToChronoTime(absl::Now() + background_.options->rpc_timeout));
  DISTRO_RETURN_IF_ERROR(FromGrpcStatus(stub_->Heartbeat(call.context(), request, &response)));
  reasons_.Succeeded("aggregator reachable again");
  return response;
}

void Heartbeat::Obey(const v1::HeartbeatResponse& response) {
  Session* const session = background_.session;
  session->ObserveHeartbeat(response);
  const bool drain = response.directive() == v1::DIRECTIVE_DRAIN;
  if (drain && !draining_) background_.log->Info("aggregator is about to stop");
  draining_ = drain;
  if (response.directive() == v1::DIRECTIVE_REPLACED) {
    session->End(absl::AbortedError(
        absl::StrCat("replaced: a newer process has the name ", session->worker().name())));
  }
  const std::string reason = ReasonToReopen(session->view(), background_.clock->MonotonicNow(),
                                            background_.options->subscription_patience);
  if (reason.empty()) return;
  background_.log->Warning("subscription is silent, opening it again", {{"reason", reason}});
  session->Update([](SessionView& view) { ++view.reopens; });
}

void Heartbeat::Rejoin() {
  Session* const session = background_.session;
  v1::JoinResponse response;
  SessionCall call(session);
  call.context()->set_deadline(absl::ToChronoTime(absl::Now() + background_.options->rpc_timeout));
  const absl::Status status =
      FromGrpcStatus(stub_->Join(call.context(), session->request(), &response));
  if (!status.ok()) {
    MayRetry(status);
    return;
  }
  if (absl::Status same = session->CheckSameRun(response); !same.ok()) {
    session->End(same);
    return;
  }
  background_.log->Info("joined again", {{"run", response.run_id()}, {"epoch", response.epoch()}});
  session->Update([&](SessionView& view) {
    view.epoch = std::max(view.epoch, EpochId(response.epoch()));
    view.head = RoundId(response.head_round());
    view.heartbeat_wanted = true;  // a new session does not know yet what this worker has
  });
}

bool Heartbeat::MayRetry(const absl::Status& status) {
  if (background_.session->ended()) return false;
  if (!IsTransient(status)) {
    background_.session->End(status);
    return false;
  }
  background_.meter->AddRetry();
  reasons_.Failed(status.ToString());
  return true;
}

}  // namespace distro::worker
