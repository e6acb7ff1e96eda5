// Membership: calls of Transition(), and how its results are applied.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/session/membership.h"

namespace distro::server {

void Membership::Restore(absl::Span<const v1::Member> members) {
  for (const v1::Member& member : members) {
    if (!TakesPart(member.state())) continue;
    Worker& worker = workers_.emplace(member.name(), Worker{.name = member.name()}).first->second;
    if (worker.state != v1::MEMBER_STATE_LEFT) continue;
    worker.reason = "has not come back since the aggregator started";
    worker.returning = true;
    worker.probation_left = member.probation_left();
    if (member.state() == v1::MEMBER_STATE_PROBATION)
      worker.probation_left = std::max(1u, member.probation_left());
  }
}

void Membership::Apply(const std::string& name, MemberEvent event, absl::string_view detail,
                       RoundId round) {
  const auto it = workers_.find(name);
  if (it == workers_.end()) return;
  Worker& worker = it->second;
  switch (event) {
    case MemberEvent::kGoodUpdate:
      if (worker.takes_part() && worker.probation_left > 0) --worker.probation_left;
      worker.invalid_in_a_row = 0;
      break;
    case MemberEvent::kInTime:
      worker.invalid_in_a_row = 0;
      worker.missed_rounds = 0;
      break;
    case MemberEvent::kMissedRound:
      ++worker.missed_rounds;
      break;
    case MemberEvent::kInvalidUpdate:
      ++worker.invalid_in_a_row;
      break;
    case MemberEvent::kHashMismatch:
    case MemberEvent::kHashDisputed:
      if (!TakeVerdict(&worker, event, round)) return;
      break;
    default:
      break;
  }
  const bool was_out = worker.state == v1::MEMBER_STATE_QUARANTINED;
  Change(&worker, event, detail);
  if (was_out || worker.state != v1::MEMBER_STATE_QUARANTINED) return;
  worker.quarantine_round = round.value();
  ForgetQuarantined();
}

bool Membership::TakeVerdict(Worker* worker, MemberEvent event, RoundId round) {
  if (!worker->takes_part() || round.value() < worker->synced_round) return false;
  if (event == MemberEvent::kHashDisputed) return true;
  std::vector<uint64_t>& seen = worker->mismatches;
  if (std::ranges::find(seen, round.value()) != seen.end()) return false;
  seen.push_back(round.value());
  std::erase_if(seen, [round](uint64_t r) { return r + kResyncWindowRounds <= round.value(); });
  return true;
}

MemberFacts Membership::FactsOf(const Worker& worker) const {
  return {.run_started = fingerprint_is_fixed_,
          .returning = worker.returning,
          .others_active = active_ - (worker.state == v1::MEMBER_STATE_ACTIVE ? 1 : 0),
          .min_workers = options_.min_workers,
          .probation_left = worker.probation_left,
          .missed_rounds = worker.missed_rounds,
          .invalid_in_a_row = worker.invalid_in_a_row,
          .mismatches = static_cast<int>(worker.mismatches.size())};
}

void Membership::Change(Worker* worker, MemberEvent event, absl::string_view detail) {
  const MemberTransition to = Transition(worker->state, event, FactsOf(*worker));
  if (to.word.empty()) return;
  worker->reason = detail.empty() ? to.reason : absl::StrCat(to.reason, ": ", detail);
  if (event == MemberEvent::kEvicted && !detail.empty()) worker->reason = std::string(detail);
  if (to.state == worker->state && event != MemberEvent::kJoined) return;
  Enter(worker, to.state, event);
  log_->Info("worker changed", {{"worker", worker->name},
                                {"state", MemberStateName(to.state)},
                                {"incarnation", absl::Hex(worker->incarnation)},
                                {"reason", worker->reason}});
  if (on_change_) on_change_(*worker, to.word);
  if (event != MemberEvent::kEnters) SkipProbation();
}

void Membership::Enter(Worker* worker, v1::MemberState state, MemberEvent event) {
  const v1::MemberState before = std::exchange(worker->state, state);
  active_ += (state == v1::MEMBER_STATE_ACTIVE) - (before == v1::MEMBER_STATE_ACTIVE);
  if (state == v1::MEMBER_STATE_QUARANTINED || before == v1::MEMBER_STATE_QUARANTINED)
    ++quarantine_changes_;
  if (state == v1::MEMBER_STATE_JOINING) {
    if (!worker->returning) worker->probation_left = options_.probation_rounds;
    worker->missed_rounds = 0;
    if (event == MemberEvent::kHashMismatch || event == MemberEvent::kHashDisputed)
      worker->resync = worker->reason;
  }
  if (state == v1::MEMBER_STATE_SYNCED) worker->synced_round = worker->next_round;
  if (state == v1::MEMBER_STATE_ACTIVE) worker->probation_left = 0;
  if (TakesPart(state)) worker->returning = false;
}

void Membership::SkipProbation() {
  for (auto& [name, worker] : workers_) {
    const bool waits = worker.state == v1::MEMBER_STATE_SYNCED ||
                       worker.state == v1::MEMBER_STATE_PROBATION ||
                       (worker.state == v1::MEMBER_STATE_LATE && worker.probation_left > 0);
    if (waits && !WhyNoProbation(FactsOf(worker)).empty()) Change(&worker, MemberEvent::kEnters);
  }
}

void Membership::EnterSynced() {
  for (auto& [name, worker] : workers_) {
    if (worker.state == v1::MEMBER_STATE_SYNCED) Change(&worker, MemberEvent::kEnters);
  }
}

void Membership::Quarantine(const v1::QuarantinedWorker& entry) {
  Worker& worker = workers_.emplace(entry.name(), Worker{.name = entry.name()}).first->second;
  worker.quarantine_round = entry.round();
  Change(&worker, MemberEvent::kEvicted, entry.reason());
  ForgetQuarantined();
}

absl::Status Membership::Admit(const std::string& name) {
  const auto it = workers_.find(name);
  if (it == workers_.end() || it->second.state != v1::MEMBER_STATE_QUARANTINED)
    return absl::NotFoundError(absl::StrCat("worker ", name, ": is not in quarantine"));
  it->second.invalid_in_a_row = 0;
  it->second.mismatches.clear();
  it->second.returning = false;
  Change(&it->second, MemberEvent::kAdmitted);
  return absl::OkStatus();
}

void Membership::FillQuarantined(v1::StoredAdmission* admission) const {
  admission->clear_quarantined();
  for (const auto& [name, worker] : workers_) {
    if (worker.state != v1::MEMBER_STATE_QUARANTINED) continue;
    v1::QuarantinedWorker* entry = admission->add_quarantined();
    entry->set_name(name);
    entry->set_reason(worker.reason);
    entry->set_round(worker.quarantine_round);
  }
}

}  // namespace distro::server
