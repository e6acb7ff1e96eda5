#include "server/round/round_manager.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/feed/verified_payload.h"
#include "common/net/wire/frames.h"
#include "common/net/wire/proto_time.h"

namespace distro::server {

absl::StatusOr<std::unique_ptr<RoundManager>> RoundManager::Create(const RunContext& context) {
  std::unique_ptr<RoundManager> manager(new RoundManager(context));
  DISTRO_RETURN_IF_ERROR(manager->decisions_.Restore());
  return manager;
}

// Sessions --------------------------------------------------------------------------------------

absl::StatusOr<v1::JoinResponse> RoundManager::Join(const v1::JoinRequest& request) {
  const SharedRun::Lock run(shared_.get());
  RunWorkers& workers = run->workers;
  const std::string& name = request.worker().name();
  if (!request.run_id().empty()) {
    DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckRun(
        request.run_id(), "this worker has state of run", "the aggregator's run is"));
    if (!workers.quarantined(name))
      DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckEpochSeen(request.epoch()));
  }
  if (run->control.draining()) return run->control.DrainingError(shared_->now());
  DISTRO_ASSIGN_OR_RETURN(const bool replaced, workers.Join(request));
  if (replaced) {
    shared_->broadcast.Close(
        name, ErrorWithReason(absl::StatusCode::kAborted, "replaced",
                              absl::StrCat("worker ", name, ": replaced by a newer process")));
  }
  run->WakeRoundThread();
  return MakeJoinResponse(*run);
}

v1::JoinResponse RoundManager::MakeJoinResponse(const SharedRun::State& run) const {
  const RunIdentity& identity = *shared_->context.run;
  v1::JoinResponse response;
  response.set_run_id(identity.run_id);
  *response.mutable_config() = identity.config;
  response.mutable_config()->set_rounds(run.position.rounds());
  response.set_model_config_json(identity.model_config_json);
  const Sha256Digest& manifest = layout().manifest().hash();
  response.set_manifest_hash(manifest.data(), manifest.size());
  *response.mutable_companions() = identity.companions;
  response.set_epoch(shared_->context.epoch.value());
  *response.mutable_snapshot() = newest_snapshot();
  response.set_log_bytes_per_second(run.workers.log_bytes_per_second());
  response.set_head_round(run.position.head().value());
  *response.mutable_lease() = ToProto(shared_->context.options.lease);
  *response.mutable_heartbeat_interval() = ToProto(shared_->context.options.heartbeat_interval);
  const std::vector<std::string>& mirrors = shared_->context.options.mirrors;
  response.mutable_mirrors()->Add(mirrors.begin(), mirrors.end());
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> RoundManager::Heartbeat(const v1::HeartbeatRequest& request) {
  const SharedRun::Lock run(shared_.get());
  const RoundId head = run->position.head();
  HeartbeatAnswer answer = run->workers.members().Heartbeat(
      request, run->peer_checks.ProgressOf(request, head), shared_->now());
  const bool in_session =
      answer.directive == v1::DIRECTIVE_CONTINUE || answer.directive == v1::DIRECTIVE_RESYNC;
  if (in_session) DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckEpochSeen(request.epoch()));
  if (run->control.draining() && (in_session || answer.directive == v1::DIRECTIVE_REJOIN))
    answer = {v1::DIRECTIVE_DRAIN, "the aggregator is about to stop"};
  run->WakeRoundThread();
  v1::HeartbeatResponse response;
  response.set_epoch(shared_->context.epoch.value());
  response.set_head_round(head.value());
  response.set_run_state(run->control.visible_state());
  response.set_directive(answer.directive);
  response.set_reason(answer.reason);
  return response;
}

void RoundManager::Leave(const v1::LeaveRequest& request) {
  const SharedRun::Lock run(shared_.get());
  run->workers.members().Leave(request.worker(), request.reason());
}

// Uploads ---------------------------------------------------------------------------------------

absl::Status RoundManager::CheckUpload(SharedRun::State& run, RoundId round,
                                       const std::string& worker) const {
  if (run.control.ended()) return run.control.DrainingError(shared_->now());
  if (round < run.position.head()) run.workers.TimeUpdate(round, worker);
  DISTRO_RETURN_IF_ERROR(run.position.CheckHead(round));
  return run.control.CheckOpen(shared_->now());
}

absl::StatusOr<UploadTicket> RoundManager::BeginUpload(const v1::UploadHeader& header) {
  DISTRO_RETURN_IF_ERROR(CheckHashes(header, layout()));
  const SharedRun::Lock run(shared_.get());
  Membership& members = run->workers.members();
  DISTRO_RETURN_IF_ERROR(members.CheckSession(header.worker(), shared_->now()));
  DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckEpoch(header.epoch()));
  const std::string& name = header.worker().name();
  DISTRO_RETURN_IF_ERROR(CheckUpload(*run, RoundId(header.round()), name));
  Round& round = *run->position.round();
  const Restrictions restrictions{
      .probation = members.Find(name)->probation_left > 0,
      .doubted = !round.counts_all_alike() && run->integrity.Doubts(name)};
  DISTRO_RETURN_IF_ERROR(round.BeginUpload(header, restrictions));
  run->integrity.AddUpload(round.id(), header);
  if (header.abstain()) run->WakeRoundThread();
  return UploadTicket{header.worker(), round.id(), round.Held(name), round.step()};
}

absl::Status RoundManager::CheckTicket(SharedRun::State& run, const UploadTicket& ticket) const {
  DISTRO_RETURN_IF_ERROR(run.workers.members().CheckSession(ticket.worker, shared_->now()));
  return CheckUpload(run, ticket.round, ticket.worker.name());
}

absl::StatusOr<PutResult> RoundManager::PreviewPayload(const UploadTicket& ticket,
                                                       SegmentId segment,
                                                       const ReceivedPayload& payload) {
  const SharedRun::Lock run(shared_.get());
  DISTRO_RETURN_IF_ERROR(CheckTicket(*run, ticket));
  return run->position.round()->PreviewPut(ticket.worker.name(), segment, payload);
}

absl::StatusOr<PutResult> RoundManager::AddPayload(const UploadTicket& ticket, SegmentId segment,
                                                   ReceivedPayload payload) {
  const SharedRun::Lock run(shared_.get());
  DISTRO_RETURN_IF_ERROR(CheckTicket(*run, ticket));
  const std::string& name = ticket.worker.name();
  Round& round = *run->position.round();
  DISTRO_ASSIGN_OR_RETURN(const PutResult result,
                          round.Put(ticket.worker, segment, std::move(payload), shared_->now()));
  if (result == PutResult::kNew) {
    if (round.Complete(name)) {
      run->workers.members().Apply(name, MemberEvent::kInTime);
      shared_->context.observer->OnUpdateReceived();
    }
    run->WakeRoundThread();
  }
  if (round.Finished(name)) run->workers.TimeUpdate(ticket.round, name);
  return result;
}

void RoundManager::CountInvalidUpload(const UploadTicket& ticket) {
  const SharedRun::Lock run(shared_.get());
  Membership& members = run->workers.members();
  if (!members.CheckSession(ticket.worker, shared_->now()).ok()) return;
  members.Apply(ticket.worker.name(), MemberEvent::kInvalidUpdate,
                absl::StrCat("the last in round ", ticket.round.value()), ticket.round);
}

// Followers -------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Subscription>> RoundManager::Subscribe(
    const v1::SubscribeRoundsRequest& request) {
  const SharedRun::Lock run(shared_.get());
  const RunFiles& files = shared_->context.files;
  if (request.has_worker()) {
    DISTRO_RETURN_IF_ERROR(run->workers.members().CheckSession(request.worker(), shared_->now()));
  }
  DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckRun(request.run_id(), "asked for run"));
  DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckEpochSeen(request.epoch()));
  if (run->control.ended()) return run->control.DrainingError(shared_->now());
  const RoundId from(request.from_round());
  DISTRO_RETURN_IF_ERROR(
      run->peer_checks.CheckChain(run->position.head(), from, request.last_hash()));
  DISTRO_RETURN_IF_ERROR(CheckServable(from, *files.rounds, shared_->damaged, *files.snapshots));
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->worker = request.worker().name();
  subscriber->objects = request.objects() && shared_->context.options.serves_objects;
  return std::make_unique<Subscription>(
      std::move(subscriber), &shared_->broadcast,
      std::make_unique<ServedLog>(files.rounds, &shared_->damaged), layout().segments(),
      shared_->context.epoch, from);
}

absl::StatusOr<RoundManager::FoundResult> RoundManager::FindResult(const RoundPlace& place,
                                                                   absl::string_view sha256) const {
  if (SharedBytes open = shared_->open_results.Find(place, sha256); open != nullptr) return open;
  RoundId head;
  {
    const SharedRun::Lock run(shared_.get());
    head = run->position.head();
  }
  const absl::Status none = absl::NotFoundError("there is no such result");
  if (place.round >= head || place.segment.value() >= layout().segments()) return none;
  const ServedLog log(shared_->context.files.rounds, &shared_->damaged);
  DISTRO_ASSIGN_OR_RETURN(auto record, log.Open(place.round));
  v1::RoundHeader header;
  header.ParseFromString(record->header_bytes());
  if (header.segments(static_cast<int>(place.segment.value())).sha256() != sha256) return none;
  return record;
}

absl::Status RoundManager::VerifyResult(const RoundPlace& place,
                                        std::shared_ptr<const StoredRecord> record) const {
  const ServedLog log(shared_->context.files.rounds, &shared_->damaged);
  VerifiedPayload payload(record, place.segment, 0);
  const uint64_t total = record->payload_bytes(place.segment);
  for (uint64_t at = 0; at < total; at += FrameBytes(at, total)) {
    const absl::Status read = payload.Read(FrameBytes(at, total)).status();
    if (absl::IsDataLoss(read)) return log.FoundDamage(place.round, read);
    DISTRO_RETURN_IF_ERROR(read);
  }
  return absl::OkStatus();
}

absl::Status RoundManager::ReportState(const v1::ReportStateRequest& request) {
  const SharedRun::Lock run(shared_.get());
  DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckRun(request.run_id(), "of run"));
  const RoundId round(request.round());
  const RoundId head = run->position.head();
  if (round > head) {
    return absl::InvalidArgumentError(absl::StrCat(
        "round: ", round.value(), " is ahead of the log, which ends before ", head.value()));
  }
  DISTRO_RETURN_IF_ERROR(run->peer_checks.CheckChain(head, round, request.log_hash()));
  DISTRO_RETURN_IF_ERROR(run->integrity.CheckReport(request));
  run->integrity.AddReport(request);
  return absl::OkStatus();
}

// The end, and views ----------------------------------------------------------------------------

void RoundManager::Drain() {
  const SharedRun::Lock run(shared_.get());
  if (run->control.draining()) return;
  const absl::Duration grace = shared_->context.options.drain_grace;
  run->control.Drain(shared_->now() + grace);
  shared_->context.log->Info("draining", {{"round", run->position.head().value()},
                                          {"open", run->position.round() ? "yes" : "no"},
                                          {"grace", absl::FormatDuration(grace)}});
  run->WakeRoundThread();
}

void RoundManager::Stop() {
  {
    const SharedRun::Lock run(shared_.get());
    run->control.Drain(shared_->now());
  }
  shared_->EndNow();
}

void RoundManager::AwaitDrained(absl::Duration timeout) const { shared_->AwaitEnd(timeout); }

RunStatus RoundManager::status() const {
  const SharedRun::Lock run(shared_.get());
  const RoundId head = run->position.head();
  RunStatus status{.state = run->control.visible_state(),
                   .reason = run->control.reason(),
                   .epoch = shared_->context.epoch,
                   .round = head,
                   .rounds = run->position.rounds(),
                   .data_fingerprint = shared_->context.files.rounds->has_start()
                                           ? run->workers.members().fingerprint()
                                           : "",
                   .log_hash = run->peer_checks.HashBefore(head),
                   .disk_error = run->disk.error(),
                   .mismatch = run->integrity.mismatch(),
                   .deadline = run->position.deadline(),
                   .workers = {},
                   .agreement = {},
                   .since = {},
                   .now = shared_->now()};
  run->workers.FillStatus(&status);
  for (const Worker& worker : status.workers)
    status.agreement.push_back(run->integrity.AgreementScore(worker.name));
  return status;
}

v1::LinkNeeds RoundManager::LinkNeeds() const {
  const SharedRun::Lock run(shared_.get());
  return run->workers.LinkNeeds();
}

uint64_t RoundManager::DamagedRecordCount() const {
  return shared_->damaged.Count(
      [this](RoundId round) { return !shared_->context.files.rounds->pruned(round); });
}

}  // namespace distro::server
