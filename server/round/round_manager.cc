#include "server/round/round_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/round/record.h"
#include "common/round_log/header_bound.h"
#include "common/rpc/proto_time.h"
#include "server/log/disk.h"

namespace distro::server {
namespace {

constexpr absl::Duration kRetryInterval = absl::Seconds(1);
constexpr uint64_t kRestoredRounds = kReferenceRounds;  // records that a start looks at; at least 2

AdaptiveDeadline DeadlineOf(const v1::RunConfig& config) {
  if (!config.has_round_deadline()) return {absl::Seconds(1), absl::InfiniteDuration()};
  return {FromProto(config.min_round_deadline()), FromProto(config.round_deadline())};
}

MembershipOptions MembershipOf(const v1::RunConfig& config, uint32_t max_workers,
                               const RoundManagerOptions& options) {
  return {.max_workers = static_cast<int>(max_workers),
          .lease = options.lease,
          .suspect_after = options.suspect_after,
          .min_workers = static_cast<int>(config.min_workers()),
          .probation_rounds = config.probation_rounds()};
}

// Who has samples of round 0, as members before there is a record.
std::vector<v1::Member> MembersOf(const std::vector<v1::Slot>& slots) {
  std::vector<v1::Member> members;
  for (const v1::Slot& slot : slots) {
    v1::Member& member = members.emplace_back();
    member.set_name(slot.worker());
    member.set_state(v1::MEMBER_STATE_ACTIVE);
    member.set_weight(1);
  }
  return members;
}

// The run's max_workers, or fewer: runs that an earlier version created may have more than a
// round's header has room for. Their names are shorter than they may be, so as many as there were
// go on.
uint32_t WorkersThatFit(const RunIdentity& run, const RoundLog& rounds) {
  uint32_t fit = MostMembers(run.layout->segments());
  if (fit < run.config.max_workers() && rounds.next_round() > RoundId(0)) {
    const auto newest = rounds.Header(RoundId(rounds.next_round().value() - 1));
    if (newest.ok()) fit = std::max<uint32_t>(fit, newest->members_size());
    fit = std::max(fit, run.config.min_workers());
  }
  return std::min(run.config.max_workers(), fit);
}

// InvalidArgument: too few for a round. `started`: there is a start record.
absl::Status CheckRoom(const RunIdentity& run, bool started, uint32_t max_workers, Log* log) {
  const absl::Status room = CheckHeaderBound(run.config, run.layout->segments());
  if (room.ok()) return room;
  if (max_workers < (started ? run.config.min_workers() : run.config.start_workers())) return room;
  log->Warning("fewer workers than max_workers are admitted",
               {{"admitted", max_workers}, {"reason", room}});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RoundManager>> RoundManager::Create(
    std::shared_ptr<const RunIdentity> run, EpochId epoch, const RunFiles& files,
    const Clock* clock, Log* log, RunObserver* observer, const RoundManagerOptions& options) {
  std::unique_ptr<RoundManager> manager(
      new RoundManager(std::move(run), epoch, files, clock, log, observer, options));
  DISTRO_RETURN_IF_ERROR(manager->Restore());
  return manager;
}

RoundManager::RoundManager(std::shared_ptr<const RunIdentity> run, EpochId epoch,
                           const RunFiles& files, const Clock* clock, Log* log,
                           RunObserver* observer, const RoundManagerOptions& options)
    : run_(std::move(run)),
      epoch_(epoch),
      round_log_(files.rounds),
      snapshots_(files.snapshots),
      clock_(clock),
      log_(log),
      observer_(observer),
      options_(options),
      max_workers_(WorkersThatFit(*run_, *files.rounds)),
      started_at_(clock->MonotonicNow()),
      broadcast_(options.ring_bytes, files.rounds->next_round(), clock,
                 [observer](absl::Duration busy) { observer->OnPhase("broadcast", busy); }),
      damaged_(log),
      results_(run_->layout->segments()),
      admission_(files.admission),
      membership_(MembershipOf(run_->config, max_workers_, options), log,
                  [this](const Worker& worker, absl::string_view word) {
                    mu_.AssertHeld();
                    OnMemberChange(worker, word);
                  }),
      references_(run_->layout.get(), run_->initial_snapshot.state_hash()),
      adaptive_deadline_(DeadlineOf(run_->config)) {}

absl::Status RoundManager::Restore() {
  absl::MutexLock admin(&admin_mu_);
  absl::MutexLock lock(&mu_);
  head_ = round_log_->next_round();
  reason_ = "starting";
  DISTRO_RETURN_IF_ERROR(CheckRoom(*run_, round_log_->has_start(), max_workers_, log_));
  if (round_log_->has_start()) DISTRO_RETURN_IF_ERROR(RestoreRounds());
  const v1::StoredAdmission& decided = admission_->value();
  paused_ = decided.paused();
  pause_reason_ = decided.pause_reason();
  ShowPause();
  for (const v1::QuarantinedWorker& entry : decided.quarantined()) membership_.Quarantine(entry);
  quarantines_written_ = membership_.quarantine_changes();
  return absl::OkStatus();
}

absl::Status RoundManager::RestoreRounds() {
  const v1::StartHeader& start = round_log_->start();
  membership_.FixFingerprint(start.data_fingerprint());
  plan_ = PlanOf(start);
  std::vector<v1::Member> members = MembersOf(plan_.slots);
  // Record r has the slots of r + 2: those of head and head + 1 are in the last two records. The
  // last ones also tell how fast the log grows, and what an archiver's reports are compared with;
  // workers were judged when they were committed.
  const uint64_t head = head_.value();
  for (uint64_t r = head < kRestoredRounds ? 0 : head - kRestoredRounds; r < head; ++r) {
    DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, round_log_->Header(RoundId(r)));
    log_rate_.Add(ResultBytes(header), FromProto(header.duration()));
    references_.Commit(header);
    plan_.Advance(header);
    members = {header.members().begin(), header.members().end()};
  }
  for (std::vector<v1::Slot>* slots : {&plan_.slots, &plan_.next_slots}) {
    if (slots->size() > max_workers_) slots->resize(max_workers_);
  }
  membership_.Restore(members);
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> RoundManager::Step() {
  while (true) {
    const Work work = NextWork();
    if (work.kind == Work::kNone) return work.at;
    if (absl::Status status = Do(work); !status.ok()) {
      DISTRO_RETURN_IF_ERROR(HandleError(status));
    }
  }
}

absl::Status RoundManager::HandleError(const absl::Status& error) {
  if (absl::IsFailedPrecondition(error) || absl::IsDataLoss(error) || absl::IsInternal(error))
    return error;
  NoteDiskError(error);
  absl::MutexLock lock(&mu_);
  retry_at_ = clock_->MonotonicNow() + kRetryInterval;
  SetReason(state_, absl::StrCat("the log cannot be written: ", DiskErrorInShort(error)));
  return absl::OkStatus();
}

// One line when it begins or becomes another failure, not one a second.
void RoundManager::NoteDiskError(const absl::Status& error) {
  const std::optional<DiskOperation> operation = FailedDiskOperation(error);
  observer_->OnLogError(operation ? DiskOperationName(*operation) : "other");
  absl::MutexLock lock(&mu_);
  const std::string text = DiskErrorInShort(error);
  if (disk_error_ == text) return;
  disk_error_ = text;
  log_->Error("log not written: will try again", {{"round", head_.value()}, {"error", error}});
}

void RoundManager::NoteDiskSuccess() {
  if (disk_error_.empty()) return;
  disk_error_.clear();
  log_->Info("log written again", {{"round", head_.value()}});
}

void RoundManager::WaitForWork(absl::Duration until) {
  const absl::Duration timeout = std::min(until - clock_->MonotonicNow(), absl::Hours(1));
  absl::MutexLock lock(&mu_);
  if (!poked_ && timeout > absl::ZeroDuration()) changed_.WaitWithTimeout(&mu_, timeout);
  poked_ = false;
}

void RoundManager::Poke() {
  poked_ = true;
  changed_.SignalAll();
}

void RoundManager::SetReason(v1::RunState state, std::string reason) {
  if (state_ == state && reason_ == reason) return;
  const bool news = state_ != state || state == v1::RUN_STATE_WAITING;
  state_ = state;
  reason_ = std::move(reason);
  if (news)
    log_->Info(
        "run",
        {{"state", v1::RunState_Name(state)}, {"round", head_.value()}, {"reason", reason_}});
}

}  // namespace distro::server
