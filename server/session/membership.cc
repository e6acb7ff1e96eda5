#include "server/session/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

constexpr size_t kReplacedKept = 16;
constexpr size_t kMaxFingerprintBytes = 128;

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
  return absl::AbortedError(
      absl::StrCat("worker ", name, ": replaced by a newer process of this name"));
}

}  // namespace

void Membership::FixFingerprint(const std::string& fingerprint) {
  fingerprint_ = fingerprint;
  fingerprint_is_fixed_ = true;
}

absl::Status Membership::CheckFingerprint(const std::string& fingerprint) const {
  if (fingerprint.empty() || fingerprint.size() > kMaxFingerprintBytes) {
    return absl::InvalidArgumentError(absl::StrCat("data_fingerprint: ", fingerprint.size(),
                                                   " bytes are outside 1..", kMaxFingerprintBytes));
  }
  if (!fingerprint_.empty() && fingerprint != fingerprint_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "data_fingerprint: this worker's data is ", fingerprint, ", the run's is ", fingerprint_));
  }
  return absl::OkStatus();
}

int Membership::Sessions() const {
  return static_cast<int>(
      std::ranges::count_if(workers_, [](const auto& w) { return w.second.in_session(); }));
}

void Membership::Forget() {
  if (static_cast<int>(workers_.size()) - Sessions() <= kLeftKept) return;
  auto oldest = workers_.end();
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (it->second.in_session()) continue;
    if (oldest == workers_.end() || it->second.last_seen < oldest->second.last_seen) oldest = it;
  }
  workers_.erase(oldest);
}

absl::Status Membership::Join(const v1::WorkerIdentity& identity,
                              const std::string& data_fingerprint, absl::Duration now) {
  DISTRO_RETURN_IF_ERROR(CheckIdentity(identity));
  if (Sessions() == 0 && !fingerprint_is_fixed_) fingerprint_.clear();
  DISTRO_RETURN_IF_ERROR(CheckFingerprint(data_fingerprint));
  auto it = workers_.find(identity.name());
  const bool known = it != workers_.end();
  if (known && Replaced(it->second, identity.incarnation())) return ReplacedError(identity.name());
  const bool in_session = known && it->second.in_session();
  if (!in_session && Sessions() >= options_.max_workers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("max_workers: all ", options_.max_workers, " places are taken"));
  }
  if (!known) it = workers_.emplace(identity.name(), Worker{.name = identity.name()}).first;
  fingerprint_ = data_fingerprint;
  it->second.last_seen = now;
  if (!in_session || it->second.incarnation != identity.incarnation())
    Begin(&it->second, identity.incarnation());
  Forget();
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
  worker->telemetry.Clear();
  Change(worker, MemberEvent::kJoined);
}

v1::Directive Membership::Heartbeat(const v1::HeartbeatRequest& request, Progress progress,
                                    absl::Duration now) {
  const auto it = workers_.find(request.worker().name());
  if (it == workers_.end()) return v1::DIRECTIVE_REJOIN;
  Worker& worker = it->second;
  if (Replaced(worker, request.worker().incarnation())) return v1::DIRECTIVE_REPLACED;
  if (worker.incarnation != request.worker().incarnation() || !worker.in_session())
    return v1::DIRECTIVE_REJOIN;
  worker.last_seen = now;
  if (request.sequence() <= worker.sequence) return v1::DIRECTIVE_CONTINUE;
  worker.sequence = request.sequence();
  worker.next_round = request.next_round();
  worker.telemetry = request.telemetry();
  if (progress == Progress::kCaughtUp) Change(&worker, MemberEvent::kCaughtUp);
  if (progress == Progress::kDiverged) Change(&worker, MemberEvent::kDiverged);
  return v1::DIRECTIVE_CONTINUE;
}

absl::Status Membership::CheckSession(const v1::WorkerIdentity& identity, absl::Duration now) {
  DISTRO_RETURN_IF_ERROR(CheckIdentity(identity));
  const auto it = workers_.find(identity.name());
  if (it != workers_.end() && Replaced(it->second, identity.incarnation()))
    return ReplacedError(identity.name());
  if (it == workers_.end() || it->second.incarnation != identity.incarnation() ||
      !it->second.in_session()) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", identity.name(), ": no session: join (again)"));
  }
  it->second.last_seen = now;
  return absl::OkStatus();
}

void Membership::Leave(const v1::WorkerIdentity& identity, absl::string_view reason) {
  const auto it = workers_.find(identity.name());
  if (it == workers_.end() || it->second.incarnation != identity.incarnation()) return;
  if (!it->second.in_session()) return;
  Change(&it->second, MemberEvent::kLeft);
  if (!reason.empty()) it->second.reason = absl::StrCat("left: ", reason.substr(0, 200));
}

std::vector<std::string> Membership::ExpireLeases(absl::Duration now) {
  std::vector<std::string> gone;
  for (auto& [name, worker] : workers_) {
    if (!worker.in_session() || now - worker.last_seen < options_.lease) continue;
    Change(&worker, MemberEvent::kLeaseOver);
    gone.push_back(name);
  }
  return gone;
}

absl::Duration Membership::NextExpiry() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [name, worker] : workers_) {
    if (worker.in_session()) next = std::min(next, worker.last_seen + options_.lease);
  }
  return next;
}

void Membership::Apply(const std::string& name, MemberEvent event) {
  const auto it = workers_.find(name);
  if (it != workers_.end()) Change(&it->second, event);
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

void Membership::Change(Worker* worker, MemberEvent event) {
  const MemberTransition to = Transition(worker->state, event);
  if (to.reason.empty()) return;
  const bool news = to.state != worker->state || event == MemberEvent::kJoined;
  worker->state = to.state;
  worker->reason = to.reason;
  if (!news) return;
  log_->Info("worker changed", {{"worker", worker->name},
                                {"state", MemberStateName(to.state)},
                                {"incarnation", absl::Hex(worker->incarnation)},
                                {"reason", to.reason}});
}

}  // namespace distro::server
