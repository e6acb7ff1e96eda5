#include "server/round/next_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/round/round_policy.h"

namespace distro::server {
namespace {

using StateNow = RoundTask::StateNow;

// After a restart: the worker has returned as far as it can, or will not return.
bool IsBack(const Worker* worker) {
  if (worker == nullptr) return false;
  return worker->state == v1::MEMBER_STATE_QUARANTINED ||
         (worker->in_session() && worker->state != v1::MEMBER_STATE_JOINING);
}

RoundTask Do(RoundTask::Kind kind) { return {.kind = kind}; }
RoundTask WaitUntil(absl::Duration at) { return {.at = at}; }
RoundTask WaitFor(std::string reason, absl::Duration until = absl::InfiniteDuration()) {
  return {.at = until, .state_now = StateNow{v1::RUN_STATE_WAITING, std::move(reason)}};
}

// No round is open, and one is left.
RoundTask NextOpenTask(const TaskInputs& in, absl::Duration now) {
  if (in.control->paused()) return {};
  if (!in.started) {
    const int active = in.members->Count(v1::MEMBER_STATE_ACTIVE);
    const int wanted = static_cast<int>(in.config->start_workers());
    if (active >= wanted) return Do(RoundTask::kStart);
    return WaitFor(absl::StrCat(active, " of start_workers ", wanted, " are active"));
  }
  // After a restart, workers with samples have one lease to return, so that their round includes
  // all of them.
  const std::vector<v1::Slot>& slots = in.position->slots();
  const auto back = std::ranges::count_if(
      slots, [&in](const v1::Slot& slot) { return IsBack(in.members->Find(slot.worker())); });
  const bool all_back = back == static_cast<int64_t>(slots.size());
  if (in.position->opened_before() || all_back || now >= in.grace_ends) return Do(RoundTask::kOpen);
  return WaitFor(absl::StrCat("after a restart: ", back, " of ", slots.size(), " workers are back"),
                 in.grace_ends);
}

RoundTask CommitDecided(const TaskInputs& in, int wanted) {
  // The record gives samples of round t + 2, to those who take part when it is made.
  if (in.members->Count(v1::MEMBER_STATE_SYNCED) > 0) return Do(RoundTask::kEnter);
  const int counted = in.members->Counted();
  // A header that was made is final, whoever has left since: its bytes may be on the disk.
  if (!in.position->gives_samples() || counted >= wanted || in.header_made)
    return Do(RoundTask::kCommit);
  return WaitFor(absl::StrCat(counted, " of min_workers ", wanted,
                              " workers are ready to get samples of round ",
                              in.position->head().value() + 2));
}

RoundTask NextRoundTask(const TaskInputs& in, absl::Duration now) {
  const RunPosition& position = *in.position;
  const RoundPolicyOptions policy{.min_workers = static_cast<int>(in.config->min_workers()),
                                  .deadline = position.deadline()};
  RoundDecision decision = Decide(position.round()->Facts(*in.members), now, policy);
  if (decision.action == RoundAction::kClose) {
    return {.kind = RoundTask::kClose,
            .segments = std::move(decision.segments),
            .by_deadline = decision.by_deadline,
            .state_now = StateNow{v1::RUN_STATE_TRAINING, std::move(decision.reason)}};
  }
  if (decision.action == RoundAction::kCommit) return CommitDecided(in, policy.min_workers);
  if (!decision.enough_can_come && !position.CountedWithoutSamples(*in.members).empty())
    return Do(RoundTask::kReopen);
  const bool before_deadline = now < position.deadline_at();
  return {.at = before_deadline ? position.deadline_at() : absl::InfiniteDuration(),
          .state_now =
              StateNow{decision.enough_can_come ? v1::RUN_STATE_TRAINING : v1::RUN_STATE_WAITING,
                       std::move(decision.reason)}};
}

// Lets the open round continue as long as it may; opens no other.
RoundTask NextDrainTask(const TaskInputs& in, absl::Duration now) {
  const absl::Duration ends = in.control->drain_ends();
  if (in.position->round() == nullptr || now >= ends) return Do(RoundTask::kDrained);
  if (now < in.retry_at) return WaitUntil(std::min(in.retry_at, ends));
  RoundTask task = NextRoundTask(in, now);
  if (task.kind == RoundTask::kClose || task.kind == RoundTask::kCommit ||
      task.kind == RoundTask::kEnter)
    return task;
  // Past its deadline it waits for min_workers.
  task.kind = now >= in.position->deadline_at() ? RoundTask::kDrained : RoundTask::kNone;
  task.at = std::min({task.at, ends, in.members->NextExpiry()});
  return task;
}

}  // namespace

RoundTask NextTask(const TaskInputs& in, absl::Duration now) {
  if (in.control->ended()) return {};
  if (in.control->state() == v1::RUN_STATE_DONE)
    return Do(in.control->draining() ? RoundTask::kDrained : RoundTask::kNone);
  // First: whatever is decided below must not count a worker whose lease is over.
  if (in.members->NextExpiry() <= now) return Do(RoundTask::kExpire);
  if (in.control->draining()) return NextDrainTask(in, now);
  if (now < in.retry_at) return WaitUntil(in.retry_at);
  // Durable before the next decision: a restart must not admit who was quarantined.
  if (in.members->quarantine_changes() != in.quarantines_written) return Do(RoundTask::kAdmission);
  const bool between = in.position->round() == nullptr;
  if (between && !in.position->has_rounds()) return Do(RoundTask::kDone);
  RoundTask task = between ? NextOpenTask(in, now) : NextRoundTask(in, now);
  task.show_pause = between;
  if (task.kind == RoundTask::kNone) task.at = std::min(task.at, in.members->NextExpiry());
  return task;
}

}  // namespace distro::server
