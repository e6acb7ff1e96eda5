// RoundManager: what rounds teach about their members: times, state hashes, agreement (docs/protocol.md, "Membership").
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/replica/replica.h"
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

// May come again when an archiver reports: Membership takes a verdict on the same round once a worker.
void RoundManager::JudgeStates(RoundId round) {
  const StateVerdict verdict = references_.Judge(round);
  const MemberEvent event =
      verdict.certain() ? MemberEvent::kHashMismatch : MemberEvent::kHashDisputed;
  for (const Disagreement& found : verdict.disagree) {
    if (mismatched_.emplace(round.value(), found.name).second) {
      observer_->OnStateHashMismatch(1);
      log_->Error("state hash differs", {{"round", round.value()},
                                         {"worker", found.name},
                                         {"state_hash", ToHex(found.state_hash)},
                                         {"reference", ToHex(verdict.reference)},
                                         {"certain", verdict.certain() ? "yes" : "no"},
                                         {"tensors", found.tensors}});
    }
    const std::string detail =
        absl::StrCat("round ", round.value(),
                     found.tensors.empty() ? "" : absl::StrCat(": differs in ", found.tensors));
    membership_.Apply(found.name, event, detail, round);
  }
  std::erase_if(mismatched_, [this](const auto& entry) {
    mu_.AssertHeld();
    return entry.first + kReferenceRounds <= head_.value();
  });
}

void RoundManager::JudgeMembers(const v1::RoundHeader& header) {
  const RoundId round(header.round());
  JudgeStates(round);
  for (const v1::Member& member : header.members()) {
    const bool contradicted = mismatched_.contains({round.value(), member.name()});
    if (round_->Complete(member.name()) && !contradicted)
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
  references_.SetReference(round, CombineTensorHashes(request.tensor_hashes()),
                           request.tensor_hashes());
  if (round < head_) JudgeStates(round);
  return absl::OkStatus();
}

absl::Status RoundManager::CheckSnapshot(const v1::SnapshotInfo& info) const {
  absl::MutexLock lock(&mu_);
  const RoundId round(info.round());
  if (round == RoundId(0) || round > head_) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot: round ", round.value(),
                                                   " is not of the rounds 1 to ", head_.value()));
  }
  DISTRO_RETURN_IF_ERROR(CheckChain(round, info.log_hash()));
  const StateVerdict verdict = references_.Judge(round);
  if (verdict.contradicted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "snapshot: before round ", round.value(),
        " most workers hold other parameters than the archiver: nobody can say who is right"));
  }
  if (verdict.source == ReferenceSource::kNone) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "no_reference",
        absl::StrCat("snapshot: before round ", round.value(),
                     " nobody has said which parameters are right: report their hashes first"));
  }
  if (verdict.reference == info.state_hash()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("snapshot: before round ", round.value(),
                                                 " the state hash is ", ToHex(verdict.reference),
                                                 ", not ", ToHex(info.state_hash())));
}

}  // namespace distro::server
