// RoundManager: sessions and subscriptions.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/rpc/proto_time.h"
#include "server/round/round_manager.h"
#include "server/session/worker_version.h"

namespace distro::server {
namespace {

absl::Status Diverged(absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "diverged",
                         absl::StrCat("diverged: ", why));
}

absl::Status Pruned(RoundId round, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned",
                         absl::StrCat("round ", round.value(), ": ", why));
}

// Results that are gone, or cannot be read while a snapshot makes them needless.
absl::Status CheckResults(RoundId from, RoundId first_kept, const DamagedRecords& damaged,
                          const SnapshotStore& snapshots) {
  if (from < first_kept) {
    return Pruned(from, absl::StrCat("the log begins with round ", first_kept.value(),
                                     ": begin from a snapshot"));
  }
  const std::optional<RoundId> unreadable = damaged.FirstFrom(from);
  if (!unreadable) return absl::OkStatus();
  const RoundId newest(snapshots.List().front().round());
  if (newest <= *unreadable) return absl::OkStatus();
  return Pruned(*unreadable, absl::StrCat("its record is damaged: begin from the snapshot before "
                                          "round ",
                                          newest.value()));
}

}  // namespace

absl::Status RoundManager::CheckEpochSeen(uint64_t epoch) {
  if (epoch <= epoch_.value()) return absl::OkStatus();
  const absl::Status fenced = ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "fenced",
      absl::StrCat("epoch ", epoch, " of this run was seen, ours is ", epoch_.value(),
                   ": a newer aggregator has taken this one's place"));
  if (!std::exchange(later_epoch_seen_, true)) log_->Error("fenced", {{"reason", fenced}});
  return fenced;
}

absl::StatusOr<v1::JoinResponse> RoundManager::Join(const v1::JoinRequest& request) {
  if (!request.run_id().empty() && request.run_id() != run_->run_id) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                           absl::StrCat("run_id: this worker has state of run ", request.run_id(),
                                        ", the aggregator's run is ", run_->run_id));
  }
  absl::MutexLock lock(&mu_);
  return JoinLocked(request);
}

absl::StatusOr<v1::JoinResponse> RoundManager::JoinLocked(const v1::JoinRequest& request) {
  const Worker* before = membership_.Find(request.worker().name());
  const bool quarantined = before != nullptr && before->state == v1::MEMBER_STATE_QUARANTINED;
  if (request.run_id() == run_->run_id && !quarantined)
    DISTRO_RETURN_IF_ERROR(CheckEpochSeen(request.epoch()));
  if (drain_ends_) return DrainingError();
  DISTRO_RETURN_IF_ERROR(CheckWorkerVersion(request.version(), Version()));
  DISTRO_RETURN_IF_ERROR(CheckLink(request.download_bytes_per_second()));
  const std::string& name = request.worker().name();
  const uint64_t old_incarnation = before == nullptr ? 0 : before->incarnation;
  DISTRO_RETURN_IF_ERROR(
      membership_.Join(request.worker(), request.data_fingerprint(), clock_->MonotonicNow()));
  if (old_incarnation != 0 && old_incarnation != request.worker().incarnation()) {
    broadcast_.Close(
        name, ErrorWithReason(absl::StatusCode::kAborted, "replaced",
                              absl::StrCat("worker ", name, ": replaced by a newer process")));
  }
  Poke();
  v1::JoinResponse response;
  response.set_run_id(run_->run_id);
  *response.mutable_config() = run_->config;
  response.set_model_config_json(run_->model_config_json);
  const Sha256Digest& manifest = run_->layout->manifest().hash();
  response.set_manifest_hash(manifest.data(), manifest.size());
  response.set_epoch(epoch_.value());
  *response.mutable_snapshot() = newest_snapshot();
  response.set_log_bytes_per_second(log_rate_.BytesPerSecond());
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

absl::StatusOr<v1::HeartbeatResponse> RoundManager::Heartbeat(const v1::HeartbeatRequest& request) {
  v1::HeartbeatResponse response;
  absl::MutexLock lock(&mu_);
  HeartbeatAnswer answer =
      membership_.Heartbeat(request, ProgressOf(request), clock_->MonotonicNow());
  const bool in_session =
      answer.directive == v1::DIRECTIVE_CONTINUE || answer.directive == v1::DIRECTIVE_RESYNC;
  if (in_session) DISTRO_RETURN_IF_ERROR(CheckEpochSeen(request.epoch()));
  if (drain_ends_ && (in_session || answer.directive == v1::DIRECTIVE_REJOIN))
    answer = {v1::DIRECTIVE_DRAIN, "the aggregator is about to stop"};
  Poke();
  response.set_epoch(epoch_.value());
  response.set_head_round(head_.value());
  response.set_run_state(VisibleState());
  response.set_directive(answer.directive);
  response.set_reason(answer.reason);
  return response;
}

void RoundManager::Leave(const v1::LeaveRequest& request) {
  absl::MutexLock lock(&mu_);
  membership_.Leave(request.worker(), request.reason());
}

absl::Status RoundManager::CheckLink(uint64_t download_bytes_per_second) const {
  if (log_rate_.CanFollow(download_bytes_per_second)) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kResourceExhausted, "too_slow",
                         absl::StrCat("this link took ", download_bytes_per_second,
                                      " bytes a second, the log grows by ",
                                      log_rate_.BytesPerSecond(), ": it would never catch up"));
}

absl::Status RoundManager::CheckChain(RoundId from, uint64_t hash) const {
  if (from == RoundId(0) && (hash == 0 || !round_log_->has_start())) return absl::OkStatus();
  if (from > head_) {
    return Diverged(absl::StrCat("round ", from.value(), " is ahead of the log, which ends before ",
                                 head_.value()));
  }
  const uint64_t ours = round_log_->HashBefore(from);
  if (hash == ours) return absl::OkStatus();
  return Diverged(absl::StrCat("before round ", from.value(), " the chain hash is ", ToHex(ours),
                               ", not ", ToHex(hash)));
}

absl::StatusOr<std::unique_ptr<Subscription>> RoundManager::Subscribe(
    const v1::SubscribeRoundsRequest& request) {
  absl::MutexLock lock(&mu_);
  if (request.has_worker())
    DISTRO_RETURN_IF_ERROR(membership_.CheckSession(request.worker(), clock_->MonotonicNow()));
  if (request.run_id() != run_->run_id) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                           absl::StrCat("run_id: asked for run ", request.run_id(),
                                        ", the aggregator's is ", run_->run_id));
  }
  DISTRO_RETURN_IF_ERROR(CheckEpochSeen(request.epoch()));
  if (ended_ && drain_ends_) return DrainingError();
  const RoundId from(request.from_round());
  DISTRO_RETURN_IF_ERROR(CheckChain(from, request.last_hash()));
  DISTRO_RETURN_IF_ERROR(CheckResults(from, round_log_->first_round(), damaged_, *snapshots_));
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->worker = request.worker().name();
  return std::make_unique<Subscription>(std::move(subscriber), &broadcast_, round_log_, &damaged_,
                                        *run_->layout, epoch_, from);
}

}  // namespace distro::server
