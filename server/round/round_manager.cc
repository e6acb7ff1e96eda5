#include "server/round/round_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro::server {
namespace {

RoundPolicyOptions PolicyOf(const v1::RunConfig& config) {
  RoundPolicyOptions policy{.min_workers = static_cast<int>(config.min_workers())};
  if (config.has_round_deadline()) {
    policy.deadline = absl::Seconds(config.round_deadline().seconds()) +
                      absl::Nanoseconds(config.round_deadline().nanos());
  }
  return policy;
}

std::vector<v1::Slot> ToVector(const google::protobuf::RepeatedPtrField<v1::Slot>& slots) {
  return {slots.begin(), slots.end()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RoundManager>> RoundManager::Create(
    std::shared_ptr<const RunIdentity> run, EpochId epoch, RoundLog* round_log, const Clock* clock,
    Log* log, RunObserver* observer, const RoundManagerOptions& options) {
  std::unique_ptr<RoundManager> manager(
      new RoundManager(std::move(run), epoch, round_log, clock, log, observer, options));
  DISTRO_RETURN_IF_ERROR(manager->Restore());
  return manager;
}

RoundManager::RoundManager(std::shared_ptr<const RunIdentity> run, EpochId epoch,
                           RoundLog* round_log, const Clock* clock, Log* log, RunObserver* observer,
                           const RoundManagerOptions& options)
    : run_(std::move(run)),
      epoch_(epoch),
      round_log_(round_log),
      clock_(clock),
      log_(log),
      observer_(observer),
      options_(options),
      policy_(PolicyOf(run_->config)),
      started_at_(clock->MonotonicNow()),
      broadcast_(options.ring_bytes, round_log->next_round()),
      results_(run_->layout->segments()),
      membership_(
          {.max_workers = static_cast<int>(run_->config.max_workers()), .lease = options.lease},
          log) {}

absl::Status RoundManager::Restore() {
  absl::MutexLock lock(&mu_);
  head_ = round_log_->next_round();
  reason_ = "starting";
  if (!round_log_->has_start()) return absl::OkStatus();
  const v1::StartHeader& start = round_log_->start();
  membership_.FixFingerprint(start.data_fingerprint());
  slots_ = ToVector(start.slots());
  next_slots_ = ToVector(start.next_slots());
  next_sample_ = start.next_sample();
  // Record r has the slots of r + 2: those of head and head + 1 are in the last two records.
  const uint64_t head = head_.value();
  for (uint64_t r = head < 2 ? 0 : head - 2; r < head; ++r) {
    DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, round_log_->Header(RoundId(r)));
    slots_ = std::exchange(next_slots_, ToVector(header.slots()));
    next_sample_ = header.next_sample();
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> RoundManager::Step() {
  while (true) {
    const Work work = NextWork();
    broadcast_.Wake();  // leases may have ended
    if (work.kind == Work::kNone) return work.at;
    if (absl::Status status = Do(work); !status.ok()) {
      if (absl::IsFailedPrecondition(status) || absl::IsDataLoss(status)) return status;
      log_->Error("log not written: will try again", {{"error", status}});
      absl::MutexLock lock(&mu_);
      retry_at_ = clock_->MonotonicNow() + absl::Seconds(1);
      SetReason(state_, absl::StrCat("the log cannot be written: ", status.ToString()));
    }
  }
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

RoundManager::Work RoundManager::NextWork() {
  const absl::Duration now = clock_->MonotonicNow();
  absl::MutexLock lock(&mu_);
  if (draining_ || state_ == v1::RUN_STATE_DONE) return {};
  ExpireLeases(now);
  if (now < retry_at_) return {.at = retry_at_, .closed = {}};
  Work work = round_ ? NextRoundWork(now) : NextOpenWork(now);
  if (work.kind == Work::kNone) work.at = std::min(work.at, membership_.NextExpiry());
  return work;
}

void RoundManager::ExpireLeases(absl::Duration now) {
  for (const std::string& name : membership_.ExpireLeases(now)) {
    if (round_) round_->Forgo(name);
    broadcast_.Close(name, absl::FailedPreconditionError(
                               absl::StrCat("worker ", name, ": lease over: join again")));
  }
}

RoundManager::Work RoundManager::NextOpenWork(absl::Duration now) {
  if (head_.value() >= run_->config.rounds()) return {.kind = Work::kDone, .closed = {}};
  const int active = membership_.Count(v1::MEMBER_STATE_ACTIVE);
  if (!round_log_->has_start()) {
    const int wanted = static_cast<int>(run_->config.start_workers());
    if (active >= wanted) return {.kind = Work::kStart, .closed = {}};
    SetReason(v1::RUN_STATE_WAITING,
              absl::StrCat(active, " of start_workers ", wanted, " are active"));
    return {};
  }
  // After a restart those who have samples get one lease to come back, so that their round has all of them.
  const absl::Duration grace_ends = started_at_ + options_.lease;
  const auto back = std::ranges::count_if(slots_, [this](const v1::Slot& slot) {
    const Worker* worker = membership_.Find(slot.worker());
    return worker != nullptr && worker->state == v1::MEMBER_STATE_ACTIVE;
  });
  const bool all_back = back == static_cast<int64_t>(slots_.size());
  if (opened_before_ || all_back || now >= grace_ends) return {.kind = Work::kOpen, .closed = {}};
  SetReason(v1::RUN_STATE_WAITING,
            absl::StrCat("after a restart: ", back, " of ", slots_.size(), " workers are back"));
  return {.at = grace_ends, .closed = {}};
}

RoundManager::Work RoundManager::NextRoundWork(absl::Duration now) {
  const RoundDecision decision = Decide(round_->Snapshot(membership_), now, policy_);
  if (decision.action == RoundAction::kClose) return CloseDecided(decision);
  if (decision.action == RoundAction::kCommit) {
    const size_t taking_part = membership_.TakingPart().size();
    const bool needs_slots = head_.value() + 2 < run_->config.rounds();
    if (!needs_slots || taking_part >= run_->config.min_workers() || !header_.empty()) {
      return {.kind = Work::kCommit, .closed = {}};
    }
    SetReason(v1::RUN_STATE_WAITING,
              absl::StrCat(taking_part, " of min_workers ", run_->config.min_workers(),
                           " are there to get samples of round ", head_.value() + 2));
    return {};
  }
  if (!decision.enough_can_come && !ActiveWithoutSamples().empty())
    return {.kind = Work::kReopen, .closed = {}};
  SetReason(decision.enough_can_come ? v1::RUN_STATE_TRAINING : v1::RUN_STATE_WAITING,
            decision.reason);
  const absl::Duration deadline = round_->opened_at() + policy_.deadline;
  return {.at = now < deadline ? deadline : absl::InfiniteDuration(), .closed = {}};
}

RoundManager::Work RoundManager::CloseDecided(const RoundDecision& decision) {
  Work work{.kind = Work::kClose, .closed = {}};
  SetReason(v1::RUN_STATE_TRAINING, decision.reason);
  by_deadline_ |= decision.by_deadline;
  std::vector<std::string> missing;
  for (const SegmentId segment : decision.segments) {
    for (std::string& name : round_->Missing(segment)) missing.push_back(std::move(name));
    const absl::Duration last_in = round_->last_in(segment);
    work.closed.push_back({segment, round_->Close(segment), last_in});
  }
  for (const std::string& name : missing) {
    membership_.Apply(name, MemberEvent::kMissedDeadline);
    round_->Forgo(name);
  }
  return work;
}

std::vector<std::string> RoundManager::ActiveWithoutSamples() const {
  std::vector<std::string> names;
  for (const std::string& name : membership_.TakingPart()) {
    if (!round_->HasSlot(name)) names.push_back(name);
  }
  const size_t room = run_->config.max_workers() -
                      std::min<size_t>(run_->config.max_workers(), round_->slots().size());
  if (names.size() > room) names.resize(room);
  return names;
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
