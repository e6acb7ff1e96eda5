// RoundManager: what workers ask for.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "server/round/reject.h"
#include "server/round/round_manager.h"
#include "server/session/proto_time.h"

namespace distro::server {
namespace {

absl::Status DrainingError() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "draining",
                         "the aggregator is about to stop: try again later");
}

}  // namespace

absl::StatusOr<v1::JoinResponse> RoundManager::Join(const v1::JoinRequest& request) {
  if (!request.run_id().empty() && request.run_id() != run_->run_id) {
    return absl::FailedPreconditionError(absl::StrCat("run_id: this worker has state of run ",
                                                      request.run_id(),
                                                      ", the aggregator's run is ", run_->run_id));
  }
  absl::StatusOr<v1::JoinResponse> response;
  {
    absl::MutexLock lock(&mu_);
    response = JoinLocked(request);
  }
  broadcast_.Wake();
  return response;
}

absl::StatusOr<v1::JoinResponse> RoundManager::JoinLocked(const v1::JoinRequest& request) {
  if (draining_) return DrainingError();
  const std::string& name = request.worker().name();
  const Worker* before = membership_.Find(name);
  const uint64_t old_incarnation = before == nullptr ? 0 : before->incarnation;
  DISTRO_RETURN_IF_ERROR(
      membership_.Join(request.worker(), request.data_fingerprint(), clock_->MonotonicNow()));
  if (old_incarnation != 0 && old_incarnation != request.worker().incarnation()) {
    broadcast_.Close(
        name, absl::AbortedError(absl::StrCat("worker ", name, ": replaced by a newer process")));
  }
  SyncExpected(name);
  Poke();
  v1::JoinResponse response;
  response.set_run_id(run_->run_id);
  *response.mutable_config() = run_->config;
  response.set_model_config_json(run_->model_config_json);
  const Sha256Digest& manifest = run_->layout->manifest().hash();
  response.set_manifest_hash(manifest.data(), manifest.size());
  response.set_epoch(epoch_.value());
  *response.mutable_snapshot() = run_->initial_snapshot;
  response.set_head_round(head_.value());
  *response.mutable_lease() = ToProto(options_.lease);
  *response.mutable_heartbeat_interval() = ToProto(options_.heartbeat_interval);
  return response;
}

Progress RoundManager::ProgressOf(const v1::HeartbeatRequest& request) const {
  if (!request.has_next_round()) return Progress::kBehind;
  const RoundId next(request.next_round());
  if (!CheckChain(next, request.log_hash()).ok()) return Progress::kDiverged;
  // The commit of the last round may be on its way: one behind counts as caught up.
  return next == head_ || next.Next() == head_ ? Progress::kCaughtUp : Progress::kBehind;
}

v1::HeartbeatResponse RoundManager::Heartbeat(const v1::HeartbeatRequest& request) {
  v1::HeartbeatResponse response;
  absl::MutexLock lock(&mu_);
  const HeartbeatAnswer answer =
      membership_.Heartbeat(request, ProgressOf(request), clock_->MonotonicNow());
  v1::Directive directive = answer.directive;
  if (draining_ && directive != v1::DIRECTIVE_REPLACED) directive = v1::DIRECTIVE_DRAIN;
  SyncExpected(request.worker().name());
  Poke();
  response.set_epoch(epoch_.value());
  response.set_head_round(head_.value());
  response.set_run_state(VisibleState());
  response.set_directive(directive);
  response.set_reason(answer.reason);
  return response;
}

void RoundManager::Leave(const v1::LeaveRequest& request) {
  {
    absl::MutexLock lock(&mu_);
    membership_.Leave(request.worker(), request.reason());
    const Worker* worker = membership_.Find(request.worker().name());
    if (worker == nullptr || worker->in_session()) return;
    SyncExpected(worker->name);
    broadcast_.Close(worker->name, absl::CancelledError("the worker left"));
    Poke();
  }
  broadcast_.Wake();
}

// Nobody waits for a worker that is not ACTIVE.
void RoundManager::SyncExpected(absl::string_view worker) {
  const Worker* found = membership_.Find(worker);
  if (round_ && found != nullptr && found->state != v1::MEMBER_STATE_ACTIVE) round_->Forgo(worker);
}

absl::Status RoundManager::CheckRound(RoundId round, absl::Duration now) const {
  const std::string where = absl::StrCat("round ", round.value());
  if (round < head_) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "late",
                           absl::StrCat(where, ": is over: round ", head_.value(), " is next"));
  }
  if (round > head_) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "wrong_round",
        absl::StrCat(where, ": has not begun: round ", head_.value(), " is next"));
  }
  if (!round_) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "not_open",
                           absl::StrCat(where, ": is not open yet"));
  }
  return absl::OkStatus();
}

absl::StatusOr<UploadTicket> RoundManager::BeginUpload(const v1::UploadHeader& header) {
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_->MonotonicNow();
  if (draining_) return DrainingError();
  DISTRO_RETURN_IF_ERROR(membership_.CheckSession(header.worker(), now));
  if (header.epoch() != epoch_.value()) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "wrong_epoch",
        absl::StrCat("epoch ", header.epoch(), ": the aggregator's is ", epoch_.value()));
  }
  DISTRO_RETURN_IF_ERROR(CheckRound(RoundId(header.round()), now));
  DISTRO_RETURN_IF_ERROR(round_->BeginUpload(header));
  if (header.abstain()) Poke();
  return UploadTicket{header.worker(), head_, round_->Held(header.worker().name())};
}

PayloadExpectation RoundManager::Expectation(RoundId round, SegmentId segment) const {
  return {.layout_hash = layout().manifest().short_hash(),
          .round = round,
          .segment = segment,
          .blocks = static_cast<uint32_t>(layout().SegmentBlocks(segment)),
          .k = static_cast<int>(run_->config.kept_per_block())};
}

absl::StatusOr<Taken> RoundManager::AddPayload(const UploadTicket& ticket, SegmentId segment,
                                               SharedBytes payload) {
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_->MonotonicNow();
  if (draining_) return DrainingError();
  DISTRO_RETURN_IF_ERROR(membership_.CheckSession(ticket.worker, now));
  DISTRO_RETURN_IF_ERROR(CheckRound(ticket.round, now));
  DISTRO_ASSIGN_OR_RETURN(const Taken taken,
                          round_->Put(ticket.worker, segment, std::move(payload), now));
  if (taken == Taken::kNew) {
    if (round_->Complete(ticket.worker.name())) {
      membership_.Apply(ticket.worker.name(), MemberEvent::kInTime);
      observer_->OnUpdateReceived();
    }
    Poke();
  }
  return taken;
}

absl::Status RoundManager::CheckChain(RoundId from, uint64_t hash) const {
  if (from == RoundId(0) && (hash == 0 || !round_log_->has_start())) return absl::OkStatus();
  if (from > head_) {
    return absl::FailedPreconditionError(absl::StrCat("diverged: round ", from.value(),
                                                      " is ahead of the log, which ends before ",
                                                      head_.value()));
  }
  const uint64_t ours = round_log_->HashBefore(from);
  if (hash == ours) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("diverged: before round ", from.value(),
                                                    " the chain hash is ", ToHex(ours), ", not ",
                                                    ToHex(hash)));
}

absl::StatusOr<std::unique_ptr<Subscription>> RoundManager::Subscribe(
    const v1::SubscribeRoundsRequest& request) {
  absl::MutexLock lock(&mu_);
  if (draining_) return DrainingError();
  DISTRO_RETURN_IF_ERROR(membership_.CheckSession(request.worker(), clock_->MonotonicNow()));
  if (request.run_id() != run_->run_id) {
    return absl::FailedPreconditionError(absl::StrCat("run_id: asked for run ", request.run_id(),
                                                      ", the aggregator's is ", run_->run_id));
  }
  const RoundId from(request.from_round());
  DISTRO_RETURN_IF_ERROR(CheckChain(from, request.last_hash()));
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->worker = request.worker().name();
  return std::make_unique<Subscription>(std::move(subscriber), &broadcast_, round_log_,
                                        *run_->layout, epoch_, from);
}

void RoundManager::Drain() {
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
    Poke();
  }
  broadcast_.End(absl::UnavailableError("the aggregator is about to stop: try again later"));
}

bool RoundManager::draining() const {
  absl::MutexLock lock(&mu_);
  return draining_;
}

v1::RunState RoundManager::VisibleState() const {
  return draining_ ? v1::RUN_STATE_DRAINING : state_;
}

RunStatus RoundManager::status() const {
  absl::MutexLock lock(&mu_);
  RunStatus status{.state = VisibleState(),
                   .reason = reason_,
                   .epoch = epoch_,
                   .round = head_,
                   .log_hash = round_log_->has_start() ? round_log_->HashBefore(head_) : 0,
                   .workers = {},
                   .now = clock_->MonotonicNow()};
  for (const auto& [name, worker] : membership_.workers()) status.workers.push_back(worker);
  return status;
}

}  // namespace distro::server
