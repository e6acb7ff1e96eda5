// RoundManager: what rounds teach about their members: times, state hashes, agreement (docs/protocol.md, "Membership").
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/round_log/log_reference.h"
#include "server/round/round_manager.h"

namespace distro::server {
namespace {

// Why a worker's streams end, when its new state ends them.
absl::Status EndOfStreams(const Worker& worker, absl::string_view word) {
  const std::string who = absl::StrCat("worker ", worker.name, ": ");
  if (worker.state == v1::MEMBER_STATE_QUARANTINED) {
    return ErrorWithReason(
        absl::StatusCode::kPermissionDenied, "quarantined",
        absl::StrCat(who, "quarantined: ", worker.reason,
                     "; an operator can admit it: distroctl admit ", worker.name));
  }
  if (worker.state != v1::MEMBER_STATE_LEFT) return absl::OkStatus();
  if (word == "left") return absl::CancelledError(absl::StrCat(who, "it left"));
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "no_session",
                         absl::StrCat(who, "lease over: join again"));
}

// Of a state hash that differs.
std::string Where(RoundId round, absl::string_view whose, absl::string_view tensors) {
  return absl::StrCat("round ", round.value(), ", of ", whose, tensors.empty() ? "" : ", in ",
                      tensors);
}

}  // namespace

// Nobody waits for a worker that is not ACTIVE.
void RoundManager::OnMemberChange(const Worker& worker, absl::string_view word) {
  observer_->OnMemberChange(word);
  state_since_[worker.name] = clock_->MonotonicNow();
  if (state_since_.size() > membership_.workers().size()) {
    std::erase_if(state_since_, [this](const auto& entry) {
      mu_.AssertHeld();
      return membership_.Find(entry.first) == nullptr;
    });
  }
  if (round_ && worker.state != v1::MEMBER_STATE_ACTIVE) round_->Forgo(worker.name);
  if (round_ && worker.state == v1::MEMBER_STATE_QUARANTINED) round_->Expel(worker.name);
  if (round_ && word == "no_probation") round_->Promote(worker.name);
  if (const absl::Status end = EndOfStreams(worker, word); !end.ok())
    broadcast_.Close(worker.name, end);
  Poke();
}

// On probation nobody waits for an update, so it does not count.
void RoundManager::TimeUpdate(RoundId round, const std::string& worker, absl::Duration now) {
  const Worker* found = membership_.Find(worker);
  if (found == nullptr || found->weight() == 0) return;
  const std::optional<UpdateTime> time = update_times_.Arrived(round, worker, now);
  if (!time) return;
  adaptive_deadline_.Add(round, time->since_open);
  observer_->OnUpdateTimed(worker, round, time->since_open);
  if (time->lateness) observer_->OnLateUpdate(*time->lateness);
}

// One segment a round, drawn so that a worker cannot know which one before it has sent: the clock is in the draw.
SegmentId RoundManager::DrawAudited(RoundId round) const {
  const auto seed = static_cast<uint64_t>(absl::ToUnixNanos(clock_->WallNow()));
  return SegmentId(static_cast<uint32_t>(SplitMix64(seed, round.value()) % layout().segments()));
}

absl::Status RoundManager::Audit(RoundId round, const ClosedSegment& closed, const Votes& votes) {
  const PayloadExpectation expected = Expectation(round, closed.segment);
  for (const Contribution& contribution : closed.audited) {
    DISTRO_ASSIGN_OR_RETURN(
        const AgreementCounts counts,
        CompareWithOthers(*contribution.payload, expected, contribution.weight, votes));
    absl::MutexLock lock(&mu_);
    agreement_.Add(round, contribution.worker, counts);
  }
  return absl::OkStatus();
}

std::set<std::string> RoundManager::JudgeStates(const v1::RoundHeader& header) {
  const RoundId round(header.round());
  const StateVerdict verdict = references_.Commit(header);
  const MemberEvent event =
      verdict.certain() ? MemberEvent::kHashMismatch : MemberEvent::kHashDisputed;
  std::set<std::string> differ;
  for (const Disagreement& found : verdict.disagree) {
    differ.insert(found.name);
    log_->Error("state hash differs",
                {{"round", round.value()},
                 {"worker", found.name},
                 {"state_hash", ToHex(found.state_hash)},
                 {"reference", verdict.reference ? ToHex(verdict.reference->state_hash) : "none"},
                 {"certain", verdict.certain() ? "yes" : "no"},
                 {"tensors", found.tensors}});
    NoteMismatch(Where(round, found.name, found.tensors));
    const std::string detail =
        absl::StrCat("round ", round.value(),
                     found.tensors.empty() ? "" : absl::StrCat(": differs in ", found.tensors));
    membership_.Apply(found.name, event, detail, round);
  }
  TellContradiction(round);
  return differ;
}

// One side is wrong, and neither may be moved by the word of the other: an operator finds out.
void RoundManager::TellContradiction(RoundId round) {
  const std::optional<Contradiction> found = references_.TakeContradiction(round);
  if (!found) return;
  log_->Error("archiver contradicts the workers", {{"round", round.value()},
                                                   {"state_hash", ToHex(found->state_hash)},
                                                   {"reference", ToHex(found->reference)},
                                                   {"tensors", found->tensors}});
  NoteMismatch(Where(round, "an archiver", found->tensors));
}

void RoundManager::NoteMismatch(const std::string& where) {
  observer_->OnStateHashMismatch(1);
  mismatch_ = where;
}

void RoundManager::JudgeMembers(const v1::RoundHeader& header) {
  const std::set<std::string> differ = JudgeStates(header);
  for (const v1::Member& member : header.members()) {
    if (round_->Complete(member.name()) && !differ.contains(member.name()))
      membership_.Apply(member.name(), MemberEvent::kGoodUpdate);
  }
  const std::optional<std::string> worst = agreement_.Worst();
  if (!worst) return;
  const double score = agreement_.Of(*worst).Score();
  membership_.Apply(*worst, MemberEvent::kDisagrees, absl::StrCat("score ", score));
  const Worker* worker = membership_.Find(*worst);
  if (worker == nullptr || worker->state == v1::MEMBER_STATE_QUARANTINED) agreement_.Clear();
}

absl::Status RoundManager::ReportState(const v1::ReportStateRequest& request) {
  absl::MutexLock lock(&mu_);
  if (request.run_id() != run_->run_id) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "other_run",
        absl::StrCat("run_id: of run ", request.run_id(), ", the aggregator's is ", run_->run_id));
  }
  const RoundId round(request.round());
  if (round > head_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "round: ", round.value(), " is ahead of the log, which ends before ", head_.value()));
  }
  DISTRO_RETURN_IF_ERROR(CheckChain(round, request.log_hash()));
  if (static_cast<size_t>(request.tensor_hashes_size()) != layout().tensors().size()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor_hashes: ", request.tensor_hashes_size(),
                                                   " for a model of ", layout().tensors().size(),
                                                   " tensors"));
  }
  const uint64_t hash = CombineTensorHashes(request.tensor_hashes());
  if (round == RoundId(0) && hash != run_->initial_snapshot.state_hash()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor_hashes: make the state hash ",
                                                   ToHex(hash), ", the run's own snapshot has ",
                                                   ToHex(run_->initial_snapshot.state_hash())));
  }
  references_.AddWitness(round, request.tensor_hashes());
  TellContradiction(round);
  return absl::OkStatus();
}

}  // namespace distro::server
