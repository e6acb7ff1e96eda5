// RoundManager: what is due now. Pure thinking is in Decide(); here it meets sessions, restarts and drains.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/round/round_manager.h"

namespace distro::server {
namespace {

// After a restart: has come back as far as it can, or will not come.
bool IsBack(const Worker* worker) {
  if (worker == nullptr) return false;
  return worker->state == v1::MEMBER_STATE_QUARANTINED ||
         (worker->in_session() && worker->state != v1::MEMBER_STATE_JOINING);
}

}  // namespace

RoundManager::Work RoundManager::NextWork() {
  const absl::Duration now = clock_->MonotonicNow();
  absl::MutexLock lock(&mu_);
  if (ended_) return {};
  if (state_ == v1::RUN_STATE_DONE)
    return {.kind = drain_ends_ ? Work::kDrained : Work::kNone, .closed = {}};
  membership_.ExpireLeases(now);
  membership_.SuspectSilent(now);
  if (drain_ends_) return NextDrainWork(now);
  if (now < retry_at_) return {.at = retry_at_, .closed = {}};
  if (membership_.quarantine_changes() != quarantines_written_)
    return {.kind = Work::kAdmission, .closed = {}};
  Work work = round_ ? NextRoundWork(now) : NextOpenWork(now);
  if (work.kind == Work::kNone) work.at = std::min(work.at, membership_.NextExpiry());
  return work;
}

// The open round goes on, as long as it may; no other opens.
RoundManager::Work RoundManager::NextDrainWork(absl::Duration now) {
  if (!round_ || now >= *drain_ends_) return {.kind = Work::kDrained, .closed = {}};
  if (now < retry_at_) return {.at = std::min(retry_at_, *drain_ends_), .closed = {}};
  Work work = NextRoundWork(now);
  if (work.kind == Work::kClose || work.kind == Work::kCommit) return work;
  if (now >= round_->opened_at() + deadline_)
    return {.kind = Work::kDrained, .closed = {}};  // it waits for min_workers
  return {.at = std::min({work.at, *drain_ends_, membership_.NextExpiry()}), .closed = {}};
}

RoundManager::Work RoundManager::NextOpenWork(absl::Duration now) {
  if (head_.value() >= run_->config.rounds()) return {.kind = Work::kDone, .closed = {}};
  ShowPause();
  if (paused_) return {};
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
  const auto back = std::ranges::count_if(plan_.slots, [this](const v1::Slot& slot) {
    mu_.AssertHeld();
    return IsBack(membership_.Find(slot.worker()));
  });
  const bool all_back = back == static_cast<int64_t>(plan_.slots.size());
  if (opened_before_ || all_back || now >= grace_ends) return {.kind = Work::kOpen, .closed = {}};
  SetReason(v1::RUN_STATE_WAITING, absl::StrCat("after a restart: ", back, " of ",
                                                plan_.slots.size(), " workers are back"));
  return {.at = grace_ends, .closed = {}};
}

void RoundManager::ShowPause() {
  if (round_ || state_ == v1::RUN_STATE_DONE) return;
  if (paused_) {
    SetReason(v1::RUN_STATE_PAUSED, pause_reason_.empty()
                                        ? "paused by an operator"
                                        : absl::StrCat("paused: ", pause_reason_));
  } else if (state_ == v1::RUN_STATE_PAUSED) {
    SetReason(v1::RUN_STATE_WAITING, "resumed");
  }
}

RoundManager::Work RoundManager::NextRoundWork(absl::Duration now) {
  const RoundDecision decision = Decide(round_->Snapshot(membership_), now, Policy());
  if (decision.action == RoundAction::kClose) return CloseDecided(decision);
  if (decision.action == RoundAction::kCommit) {
    membership_.EnterSynced();
    const int counted = membership_.Counted();
    const int wanted = Policy().min_workers;
    const bool needs_slots = head_.value() + 2 < run_->config.rounds();
    if (!needs_slots || counted >= wanted || !header_.empty())
      return {.kind = Work::kCommit, .closed = {}};
    SetReason(v1::RUN_STATE_WAITING,
              absl::StrCat(counted, " of min_workers ", wanted,
                           " are there to get samples of round ", head_.value() + 2));
    return {};
  }
  if (!decision.enough_can_come && !CountedWithoutSamples().empty())
    return {.kind = Work::kReopen, .closed = {}};
  SetReason(decision.enough_can_come ? v1::RUN_STATE_TRAINING : v1::RUN_STATE_WAITING,
            decision.reason);
  const absl::Duration deadline = round_->opened_at() + deadline_;
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
    std::vector<Contribution> audited;
    if (segment == round_->audited()) audited = round_->Audited();
    work.closed.push_back({segment, round_->Close(segment), last_in, std::move(audited)});
  }
  for (const std::string& name : missing) {
    round_->Forgo(name);
    membership_.Apply(name, MemberEvent::kMissedDeadline);
  }
  return work;
}

RoundPolicyOptions RoundManager::Policy() const {
  return {.min_workers = static_cast<int>(run_->config.min_workers()), .deadline = deadline_};
}

std::vector<std::string> RoundManager::CountedWithoutSamples() const {
  std::vector<std::string> names;
  for (const auto& [name, worker] : membership_.workers()) {
    if (worker.weight() > 0 && !round_->HasSlot(name)) names.push_back(name);
  }
  const size_t room = max_workers_ - std::min<size_t>(max_workers_, round_->slots().size());
  if (names.size() > room) names.resize(room);
  return names;
}

}  // namespace distro::server
