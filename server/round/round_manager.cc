#include "server/round/round_manager.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/wire/proto_time.h"

namespace distro::server {

absl::StatusOr<std::unique_ptr<RoundManager>> RoundManager::Create(const RunContext& context) {
  std::unique_ptr<RoundManager> manager(new RoundManager(context));
  DISTRO_RETURN_IF_ERROR(manager->decisions_.Restore());
  return manager;
}

// Sessions --------------------------------------------------------------------------------------

absl::StatusOr<v1::JoinResponse> RoundManager::Join(const v1::JoinRequest& request) {
  absl::MutexLock lock(&shared_.mu);
  RunWorkers& workers = shared_.workers;
  const std::string& name = request.worker().name();
  if (!request.run_id().empty()) {
    DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckRun(
        request.run_id(), "this worker has state of run", "the aggregator's run is"));
    if (!workers.quarantined(name))
      DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckEpochSeen(request.epoch()));
  }
  if (shared_.control.draining()) return shared_.control.DrainingError(shared_.now());
  DISTRO_ASSIGN_OR_RETURN(const bool replaced, workers.Join(request));
  if (replaced) {
    shared_.broadcast.Close(
        name, ErrorWithReason(absl::StatusCode::kAborted, "replaced",
                              absl::StrCat("worker ", name, ": replaced by a newer process")));
  }
  shared_.Poke();
  return Welcome();
}

v1::JoinResponse RoundManager::Welcome() const {
  v1::JoinResponse response;
  response.set_run_id(run().run_id);
  *response.mutable_config() = run().config;
  response.mutable_config()->set_rounds(shared_.position.rounds());
  response.set_model_config_json(run().model_config_json);
  const Sha256Digest& manifest = layout().manifest().hash();
  response.set_manifest_hash(manifest.data(), manifest.size());
  *response.mutable_companions() = run().companions;
  response.set_epoch(shared_.context.epoch.value());
  *response.mutable_snapshot() = newest_snapshot();
  response.set_log_bytes_per_second(shared_.workers.log_bytes_per_second());
  response.set_head_round(shared_.position.head().value());
  *response.mutable_lease() = ToProto(shared_.context.options.lease);
  *response.mutable_heartbeat_interval() = ToProto(shared_.context.options.heartbeat_interval);
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> RoundManager::Heartbeat(const v1::HeartbeatRequest& request) {
  absl::MutexLock lock(&shared_.mu);
  const RoundId head = shared_.position.head();
  HeartbeatAnswer answer = shared_.workers.members().Heartbeat(
      request, shared_.peer_checks.ProgressOf(request, head), shared_.now());
  const bool in_session =
      answer.directive == v1::DIRECTIVE_CONTINUE || answer.directive == v1::DIRECTIVE_RESYNC;
  if (in_session) DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckEpochSeen(request.epoch()));
  if (shared_.control.draining() && (in_session || answer.directive == v1::DIRECTIVE_REJOIN))
    answer = {v1::DIRECTIVE_DRAIN, "the aggregator is about to stop"};
  shared_.Poke();
  v1::HeartbeatResponse response;
  response.set_epoch(shared_.context.epoch.value());
  response.set_head_round(head.value());
  response.set_run_state(shared_.control.visible_state());
  response.set_directive(answer.directive);
  response.set_reason(answer.reason);
  return response;
}

void RoundManager::Leave(const v1::LeaveRequest& request) {
  absl::MutexLock lock(&shared_.mu);
  shared_.workers.members().Leave(request.worker(), request.reason());
}

// Uploads ---------------------------------------------------------------------------------------

absl::Status RoundManager::CheckUpload(RoundId round, const std::string& worker) {
  if (shared_.control.ended()) return shared_.control.DrainingError(shared_.now());
  if (round < shared_.position.head()) shared_.workers.TimeUpdate(round, worker);
  DISTRO_RETURN_IF_ERROR(shared_.position.CheckHead(round));
  return shared_.control.CheckOpen(shared_.now());
}

absl::StatusOr<UploadTicket> RoundManager::BeginUpload(const v1::UploadHeader& header) {
  DISTRO_RETURN_IF_ERROR(CheckHashes(header, layout()));
  absl::MutexLock lock(&shared_.mu);
  Membership& members = shared_.workers.members();
  DISTRO_RETURN_IF_ERROR(members.CheckSession(header.worker(), shared_.now()));
  DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckEpoch(header.epoch()));
  const std::string& name = header.worker().name();
  DISTRO_RETURN_IF_ERROR(CheckUpload(RoundId(header.round()), name));
  Round& round = *shared_.position.round();
  const Restrictions restrictions{
      .probation = members.Find(name)->probation_left > 0,
      .doubted = !round.counts_all_alike() && shared_.integrity.Doubts(name)};
  DISTRO_RETURN_IF_ERROR(round.BeginUpload(header, restrictions));
  shared_.integrity.AddUpload(round.id(), header);
  if (header.abstain()) shared_.Poke();
  return UploadTicket{header.worker(), round.id(), round.Held(name), round.step()};
}

absl::Status RoundManager::CheckTicket(const UploadTicket& ticket) {
  DISTRO_RETURN_IF_ERROR(shared_.workers.members().CheckSession(ticket.worker, shared_.now()));
  return CheckUpload(ticket.round, ticket.worker.name());
}

absl::StatusOr<PutResult> RoundManager::PreviewPayload(const UploadTicket& ticket,
                                                       SegmentId segment,
                                                       const ReceivedPayload& payload) {
  absl::MutexLock lock(&shared_.mu);
  DISTRO_RETURN_IF_ERROR(CheckTicket(ticket));
  return shared_.position.round()->PreviewPut(ticket.worker.name(), segment, payload);
}

absl::StatusOr<PutResult> RoundManager::AddPayload(const UploadTicket& ticket, SegmentId segment,
                                                   ReceivedPayload payload) {
  absl::MutexLock lock(&shared_.mu);
  DISTRO_RETURN_IF_ERROR(CheckTicket(ticket));
  const std::string& name = ticket.worker.name();
  Round& round = *shared_.position.round();
  DISTRO_ASSIGN_OR_RETURN(const PutResult result,
                          round.Put(ticket.worker, segment, std::move(payload), shared_.now()));
  if (result == PutResult::kNew) {
    if (round.Complete(name)) {
      shared_.workers.members().Apply(name, MemberEvent::kInTime);
      shared_.context.observer->OnUpdateReceived();
    }
    shared_.Poke();
  }
  if (round.Finished(name)) shared_.workers.TimeUpdate(ticket.round, name);
  return result;
}

void RoundManager::CountInvalidUpload(const UploadTicket& ticket) {
  absl::MutexLock lock(&shared_.mu);
  Membership& members = shared_.workers.members();
  if (!members.CheckSession(ticket.worker, shared_.now()).ok()) return;
  members.Apply(ticket.worker.name(), MemberEvent::kInvalidUpdate,
                absl::StrCat("the last in round ", ticket.round.value()), ticket.round);
}

// Followers -------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Subscription>> RoundManager::Subscribe(
    const v1::SubscribeRoundsRequest& request) {
  absl::MutexLock lock(&shared_.mu);
  const RunFiles& files = shared_.context.files;
  if (request.has_worker()) {
    DISTRO_RETURN_IF_ERROR(shared_.workers.members().CheckSession(request.worker(), shared_.now()));
  }
  DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckRun(request.run_id(), "asked for run"));
  DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckEpochSeen(request.epoch()));
  if (shared_.control.ended()) return shared_.control.DrainingError(shared_.now());
  const RoundId from(request.from_round());
  DISTRO_RETURN_IF_ERROR(
      shared_.peer_checks.CheckChain(shared_.position.head(), from, request.last_hash()));
  DISTRO_RETURN_IF_ERROR(CheckServable(from, *files.rounds, shared_.damaged, *files.snapshots));
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->worker = request.worker().name();
  return std::make_unique<Subscription>(std::move(subscriber), &shared_.broadcast, files.rounds,
                                        &shared_.damaged, layout(), shared_.context.epoch, from);
}

absl::Status RoundManager::ReportState(const v1::ReportStateRequest& request) {
  absl::MutexLock lock(&shared_.mu);
  DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckRun(request.run_id(), "of run"));
  const RoundId round(request.round());
  const RoundId head = shared_.position.head();
  if (round > head) {
    return absl::InvalidArgumentError(absl::StrCat(
        "round: ", round.value(), " is ahead of the log, which ends before ", head.value()));
  }
  DISTRO_RETURN_IF_ERROR(shared_.peer_checks.CheckChain(head, round, request.log_hash()));
  DISTRO_RETURN_IF_ERROR(shared_.integrity.CheckReport(request));
  shared_.integrity.AddReport(request);
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> RoundManager::Step() {
  step_began_ = absl::ToInt64Nanoseconds(shared_.now());
  absl::StatusOr<absl::Duration> next = round_thread_.Step();
  step_began_ = kNoStep;
  return next;
}

absl::Duration RoundManager::StepTakes() const {
  const int64_t began = step_began_;
  if (began == kNoStep) return absl::ZeroDuration();
  return shared_.now() - absl::Nanoseconds(began);
}

// The end, and views ----------------------------------------------------------------------------

void RoundManager::Drain() {
  absl::MutexLock lock(&shared_.mu);
  if (shared_.control.draining()) return;
  const absl::Duration grace = shared_.context.options.drain_grace;
  shared_.control.Drain(shared_.now() + grace);
  shared_.context.log->Info("draining", {{"round", shared_.position.head().value()},
                                         {"open", shared_.position.round() ? "yes" : "no"},
                                         {"grace", absl::FormatDuration(grace)}});
  shared_.Poke();
}

void RoundManager::Stop() {
  {
    absl::MutexLock lock(&shared_.mu);
    shared_.control.Drain(shared_.now());
  }
  shared_.EndNow();
}

void RoundManager::AwaitDrained(absl::Duration timeout) const {
  absl::MutexLock lock(&shared_.mu);
  shared_.mu.AwaitWithTimeout(absl::Condition(&shared_.control, &Control::ended), timeout);
}

RunStatus RoundManager::status() const {
  absl::MutexLock lock(&shared_.mu);
  const RoundId head = shared_.position.head();
  RunStatus status{.state = shared_.control.visible_state(),
                   .reason = shared_.control.reason(),
                   .epoch = shared_.context.epoch,
                   .round = head,
                   .rounds = shared_.position.rounds(),
                   .data_fingerprint = shared_.context.files.rounds->has_start()
                                           ? shared_.workers.members().fingerprint()
                                           : "",
                   .log_hash = shared_.peer_checks.HashBefore(head),
                   .disk_error = shared_.disk.error(),
                   .mismatch = shared_.integrity.mismatch(),
                   .deadline = shared_.position.deadline(),
                   .workers = {},
                   .agreement = {},
                   .since = {},
                   .now = shared_.now()};
  shared_.workers.FillStatus(&status);
  for (const Worker& worker : status.workers)
    status.agreement.push_back(shared_.integrity.AgreementScore(worker.name));
  return status;
}

v1::LinkNeeds RoundManager::LinkNeeds() const {
  absl::MutexLock lock(&shared_.mu);
  return shared_.workers.LinkNeeds();
}

uint64_t RoundManager::DamagedRecordCount() const {
  return shared_.damaged.Count(
      [this](RoundId round) { return !shared_.context.files.rounds->pruned(round); });
}

}  // namespace distro::server
