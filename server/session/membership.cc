#include "server/session/membership.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/run/run_config.h"

namespace distro::server {
namespace {

constexpr size_t kReplacedKept = 16;
constexpr size_t kMaxLeaveReasonBytes = 200;

absl::Status CheckIdentity(const v1::WorkerIdentity& identity) {
  DISTRO_RETURN_IF_ERROR(ValidateName(identity.name(), "worker.name"));
  if (identity.incarnation() == 0)
    return absl::InvalidArgumentError("worker.incarnation: must not be 0");
  return absl::OkStatus();
}

bool Replaced(const Worker& worker, uint64_t incarnation) {
  return std::ranges::find(worker.replaced, incarnation) != worker.replaced.end();
}

absl::Status ReplacedError(absl::string_view name) {
  return ErrorWithReason(
      absl::StatusCode::kAborted, "replaced",
      absl::StrCat("worker ", name, ": replaced by a newer process of this name"));
}

std::string QuarantineText(const Worker& worker) {
  return absl::StrCat(worker.reason, "; an operator can admit it: distroctl admit ", worker.name);
}

// Checks that the process is the newest of its name and not in quarantine.
absl::Status CheckMayCome(const Worker& worker, uint64_t incarnation) {
  if (worker.state == v1::MEMBER_STATE_QUARANTINED) {
    return ErrorWithReason(
        absl::StatusCode::kPermissionDenied, "quarantined",
        absl::StrCat("worker ", worker.name, ": quarantined: ", QuarantineText(worker)));
  }
  return Replaced(worker, incarnation) ? ReplacedError(worker.name) : absl::OkStatus();
}

bool MayBecomeSuspect(const Worker& worker) {
  return worker.takes_part() && worker.state != v1::MEMBER_STATE_SUSPECT;
}

bool BeginsAnew(const v1::HeartbeatRequest& request, const Worker& worker) {
  return !request.has_next_round() || request.next_round() < worker.next_round;
}

std::optional<double> EvaluationLoss(const v1::WorkerTelemetry& telemetry,
                                     std::optional<double> before) {
  if (!telemetry.has_evaluation_loss()) return std::nullopt;
  const double loss = telemetry.evaluation_loss();
  return std::isfinite(loss) && loss >= 0 ? loss : before;
}

}  // namespace

void Membership::FixFingerprint(const std::string& fingerprint) {
  fingerprint_ = fingerprint;
  fingerprint_is_fixed_ = true;
}

bool Membership::TakesAnyData() const { return options_.data_fingerprint == kAnyData; }

absl::Status Membership::CheckFingerprint(const std::string& fingerprint) const {
  if (fingerprint.size() > kMaxFingerprintBytes) {
    return absl::InvalidArgumentError(absl::StrCat("data_fingerprint: ", fingerprint.size(),
                                                   " bytes exceed ", kMaxFingerprintBytes));
  }
  if (TakesAnyData()) return absl::OkStatus();
  if (fingerprint.empty()) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "other_data",
        "data_fingerprint: this worker sends none, and the run compares them: give "
        "it, or create the run with \"data_fingerprint\": \"any\"");
  }
  if (!fingerprint_.empty() && fingerprint != fingerprint_) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_data",
                           absl::StrCat("data_fingerprint: this worker's data is ", fingerprint,
                                        ", the run's is ", fingerprint_));
  }
  return absl::OkStatus();
}

int Membership::Sessions() const {
  return static_cast<int>(
      std::ranges::count_if(workers_, [](const auto& w) { return w.second.in_session(); }));
}

void Membership::ForgetLeft() {
  if (Count(v1::MEMBER_STATE_LEFT) <= kLeftKept) return;
  Erase(v1::MEMBER_STATE_LEFT,
        [](const Worker& a, const Worker& b) { return a.last_seen < b.last_seen; });
}

void Membership::ForgetQuarantined() {
  if (Count(v1::MEMBER_STATE_QUARANTINED) <= kQuarantinedKept) return;
  Erase(v1::MEMBER_STATE_QUARANTINED,
        [](const Worker& a, const Worker& b) { return a.quarantine_round < b.quarantine_round; });
  ++quarantine_changes_;
}

template <typename Before>
void Membership::Erase(v1::MemberState state, Before before) {
  auto first = workers_.end();
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (it->second.state != state) continue;
    if (first == workers_.end() || before(it->second, first->second)) first = it;
  }
  log_->Info("worker forgotten", {{"worker", first->first}, {"state", MemberStateName(state)}});
  workers_.erase(first);
}

absl::Status Membership::Join(const v1::WorkerIdentity& identity,
                              const std::string& data_fingerprint, absl::Duration now,
                              uint64_t own_tokens) {
  DISTRO_RETURN_IF_ERROR(CheckIdentity(identity));
  auto it = workers_.find(identity.name());
  const bool known = it != workers_.end();
  if (known) DISTRO_RETURN_IF_ERROR(CheckMayCome(it->second, identity.incarnation()));
  if (Sessions() == 0 && !fingerprint_is_fixed_) fingerprint_ = options_.data_fingerprint;
  DISTRO_RETURN_IF_ERROR(CheckFingerprint(data_fingerprint));
  const bool in_session = known && it->second.in_session();
  if (!in_session && Sessions() >= options_.max_workers) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "full",
                           absl::StrCat("refused: ", options_.max_workers,
                                        " workers are in session, the limit (max_workers)"));
  }
  if (!known) it = workers_.emplace(identity.name(), Worker{.name = identity.name()}).first;
  if (!TakesAnyData()) fingerprint_ = data_fingerprint;
  it->second.resync.clear();
  it->second.own_tokens = own_tokens;
  if (!in_session || it->second.incarnation != identity.incarnation())
    Begin(&it->second, identity.incarnation());
  Hear(&it->second, now);
  ForgetLeft();
  return absl::OkStatus();
}

void Membership::Begin(Worker* worker, uint64_t incarnation) {
  if (worker->incarnation != 0 && worker->incarnation != incarnation) {
    if (worker->replaced.size() == kReplacedKept) worker->replaced.erase(worker->replaced.begin());
    worker->replaced.push_back(worker->incarnation);
  }
  worker->incarnation = incarnation;
  worker->sequence = 0;
  worker->next_round = 0;
  worker->evaluation_loss.reset();
  Change(worker, MemberEvent::kJoined);
}

void Membership::Hear(Worker* worker, absl::Duration now) {
  worker->last_seen = now;
  Change(worker, MemberEvent::kHeard);
}

HeartbeatAnswer Membership::Heartbeat(const v1::HeartbeatRequest& request, Progress progress,
                                      absl::Duration now) {
  const HeartbeatAnswer rejoin{v1::DIRECTIVE_REJOIN, "no session of this process: join again"};
  const auto it = workers_.find(request.worker().name());
  if (it == workers_.end()) return rejoin;
  Worker& worker = it->second;
  if (worker.state == v1::MEMBER_STATE_QUARANTINED)
    return {v1::DIRECTIVE_QUARANTINED, QuarantineText(worker)};
  if (Replaced(worker, request.worker().incarnation()))
    return {v1::DIRECTIVE_REPLACED, "a newer process has this name"};
  if (worker.incarnation != request.worker().incarnation() || !worker.in_session()) return rejoin;
  Hear(&worker, now);
  if (request.sequence() <= worker.sequence) return {};
  if (BeginsAnew(request, worker)) worker.resync.clear();
  worker.sequence = request.sequence();
  worker.next_round = request.next_round();
  worker.evaluation_loss = EvaluationLoss(request.telemetry(), worker.evaluation_loss);
  if (!worker.resync.empty()) return {v1::DIRECTIVE_RESYNC, worker.resync};
  if (progress == Progress::kDiverged) {
    Change(&worker, MemberEvent::kDiverged);
    return {v1::DIRECTIVE_RESYNC, worker.reason};
  }
  if (!request.has_next_round()) Change(&worker, MemberEvent::kBeganAnew);
  if (progress == Progress::kCaughtUp) Change(&worker, MemberEvent::kCaughtUp);
  return {};
}

absl::Status Membership::CheckSession(const v1::WorkerIdentity& identity, absl::Duration now) {
  DISTRO_RETURN_IF_ERROR(CheckIdentity(identity));
  const auto it = workers_.find(identity.name());
  if (it != workers_.end())
    DISTRO_RETURN_IF_ERROR(CheckMayCome(it->second, identity.incarnation()));
  if (it == workers_.end() || it->second.incarnation != identity.incarnation() ||
      !it->second.in_session()) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "no_session",
                           absl::StrCat("worker ", identity.name(), ": no session: join (again)"));
  }
  Hear(&it->second, now);
  return absl::OkStatus();
}

void Membership::Leave(const v1::WorkerIdentity& identity, absl::string_view reason) {
  const auto it = workers_.find(identity.name());
  if (it == workers_.end() || it->second.incarnation != identity.incarnation()) return;
  if (!it->second.in_session()) return;
  const absl::string_view start = reason.substr(0, kMaxLeaveReasonBytes);
  Change(&it->second, MemberEvent::kLeft, start.substr(0, ValidUtf8Prefix(start)));
}

std::vector<std::string> Membership::ExpireLeases(absl::Duration now) {
  std::vector<std::string> gone;
  for (auto& [name, worker] : workers_) {
    if (worker.in_session() && now - worker.last_seen >= options_.lease) gone.push_back(name);
  }
  for (const std::string& name : gone) Apply(name, MemberEvent::kLeaseOver);
  return gone;
}

std::vector<std::string> Membership::SuspectSilent(absl::Duration now) {
  std::vector<std::string> silent;
  for (auto& [name, worker] : workers_) {
    if (MayBecomeSuspect(worker) && now - worker.last_seen >= options_.suspect_after)
      silent.push_back(name);
  }
  for (const std::string& name : silent) Apply(name, MemberEvent::kSilent);
  return silent;
}

absl::Duration Membership::NextExpiry() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [name, worker] : workers_) {
    if (worker.in_session()) next = std::min(next, worker.last_seen + options_.lease);
    if (MayBecomeSuspect(worker)) next = std::min(next, worker.last_seen + options_.suspect_after);
  }
  return next;
}

const Worker* Membership::Find(absl::string_view name) const {
  const auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : &it->second;
}

int Membership::Count(v1::MemberState state) const {
  return static_cast<int>(
      std::ranges::count_if(workers_, [state](const auto& w) { return w.second.state == state; }));
}

std::vector<std::string> Membership::TakingPart() const {
  std::vector<std::string> names;
  for (const auto& [name, worker] : workers_) {
    if (worker.takes_part()) names.push_back(name);
  }
  return names;
}

int Membership::Counted() const {
  return static_cast<int>(
      std::ranges::count_if(workers_, [](const auto& w) { return w.second.weight() > 0; }));
}

// States: calls of Transition(), and how their results are applied --------------------------------

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
