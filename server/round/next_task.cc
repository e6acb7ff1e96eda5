#include "server/round/next_task.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/round/round_policy.h"

namespace distro::server {
namespace {

// After a restart: the worker has returned as far as it can, or will not return.
bool IsBack(const Worker* worker) {
  if (worker == nullptr) return false;
  return worker->state == v1::MEMBER_STATE_QUARANTINED ||
         (worker->in_session() && worker->state != v1::MEMBER_STATE_JOINING);
}

RoundTask Do(RoundTask::Kind kind) { return {.kind = kind, .closed = {}}; }
RoundTask WaitUntil(absl::Duration at) { return {.at = at, .closed = {}}; }

RoundTask NextOpenTask(const TaskInputs& a, absl::Duration now) {
  if (!a.position->has_rounds()) return Do(RoundTask::kDone);
  a.control->ShowPause();
  if (a.control->paused()) return {};
  if (!a.started) {
    const int active = a.members->Count(v1::MEMBER_STATE_ACTIVE);
    const int wanted = static_cast<int>(a.config->start_workers());
    if (active >= wanted) return Do(RoundTask::kStart);
    a.control->Set(v1::RUN_STATE_WAITING,
                   absl::StrCat(active, " of start_workers ", wanted, " are active"));
    return {};
  }
  // After a restart, workers with samples have one lease to return, so that their round includes
  // all of them.
  const std::vector<v1::Slot>& slots = a.position->slots();
  const auto back = std::ranges::count_if(
      slots, [&a](const v1::Slot& slot) { return IsBack(a.members->Find(slot.worker())); });
  const bool all_back = back == static_cast<int64_t>(slots.size());
  if (a.position->opened_before() || all_back || now >= a.grace_ends) return Do(RoundTask::kOpen);
  a.control->Set(v1::RUN_STATE_WAITING, absl::StrCat("after a restart: ", back, " of ",
                                                     slots.size(), " workers are back"));
  return WaitUntil(a.grace_ends);
}

RoundTask CloseDecided(const TaskInputs& a, const RoundDecision& decision) {
  RoundTask task = Do(RoundTask::kClose);
  a.control->Set(v1::RUN_STATE_TRAINING, decision.reason);
  if (decision.by_deadline) a.position->CloseByDeadline();
  for (const std::string& name :
       CloseSegments(decision.segments, a.position->round(), &task.closed)) {
    a.position->round()->StopWaitingFor(name);
    a.members->Apply(name, MemberEvent::kMissedDeadline);
  }
  return task;
}

RoundTask CommitDecided(const TaskInputs& a, int wanted) {
  a.members->EnterSynced();
  const int counted = a.members->Counted();
  if (!a.position->gives_samples() || counted >= wanted || a.header_made)
    return Do(RoundTask::kCommit);
  a.control->Set(v1::RUN_STATE_WAITING, absl::StrCat(counted, " of min_workers ", wanted,
                                                     " are there to get samples of round ",
                                                     a.position->head().value() + 2));
  return {};
}

RoundTask NextRoundTask(const TaskInputs& a, absl::Duration now) {
  const RunPosition& position = *a.position;
  const RoundPolicyOptions policy{.min_workers = static_cast<int>(a.config->min_workers()),
                                  .deadline = position.deadline()};
  const RoundDecision decision = Decide(position.round()->Facts(*a.members), now, policy);
  if (decision.action == RoundAction::kClose) return CloseDecided(a, decision);
  if (decision.action == RoundAction::kCommit) return CommitDecided(a, policy.min_workers);
  if (!decision.enough_can_come && !position.CountedWithoutSamples(*a.members).empty())
    return Do(RoundTask::kReopen);
  a.control->Set(decision.enough_can_come ? v1::RUN_STATE_TRAINING : v1::RUN_STATE_WAITING,
                 decision.reason);
  return WaitUntil(now < position.deadline_at() ? position.deadline_at()
                                                : absl::InfiniteDuration());
}

// Lets the open round continue as long as it may; opens no other.
RoundTask NextDrainTask(const TaskInputs& a, absl::Duration now) {
  const absl::Duration ends = a.control->drain_ends();
  if (a.position->round() == nullptr || now >= ends) return Do(RoundTask::kDrained);
  if (now < a.retry_at) return WaitUntil(std::min(a.retry_at, ends));
  RoundTask task = NextRoundTask(a, now);
  if (task.kind == RoundTask::kClose || task.kind == RoundTask::kCommit) return task;
  if (now >= a.position->deadline_at()) return Do(RoundTask::kDrained);  // it waits for min_workers
  return WaitUntil(std::min({task.at, ends, a.members->NextExpiry()}));
}

}  // namespace

RoundTask NextTask(const TaskInputs& a, absl::Duration now) {
  if (a.control->ended()) return {};
  if (a.control->state() == v1::RUN_STATE_DONE)
    return Do(a.control->draining() ? RoundTask::kDrained : RoundTask::kNone);
  a.members->ExpireLeases(now);
  a.members->SuspectSilent(now);
  if (a.control->draining()) return NextDrainTask(a, now);
  if (now < a.retry_at) return WaitUntil(a.retry_at);
  if (a.members->quarantine_changes() != a.quarantines_written) return Do(RoundTask::kAdmission);
  RoundTask task = a.position->round() != nullptr ? NextRoundTask(a, now) : NextOpenTask(a, now);
  if (task.kind == RoundTask::kNone) task.at = std::min(task.at, a.members->NextExpiry());
  return task;
}

}  // namespace distro::server
