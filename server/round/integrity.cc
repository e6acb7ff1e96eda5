#include "server/round/integrity.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/run/record/log_reference.h"
#include "common/run/run_config.h"

namespace distro::server {
namespace {

// Describes a state hash that differs.
std::string Where(RoundId round, absl::string_view whose, absl::string_view tensors) {
  return absl::StrCat("round ", round.value(), ", of ", whose, tensors.empty() ? "" : ", in ",
                      tensors);
}

// Honest workers oppose each other where they read texts of other kinds (docs/decisions/0036).
bool MayReadOtherTexts(const v1::RunConfig& config) {
  return config.data() == v1::DATA_LOCAL || config.data_fingerprint() == kAnyData;
}

absl::Status CheckCount(size_t hashes, const Layout& layout) {
  if (hashes == layout.tensors().size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor_hashes: ", hashes, " for a model of ",
                                                 layout.tensors().size(), " tensors"));
}

}  // namespace

Integrity::Integrity(const RunIdentity* run, Log* log, RunObserver* observer)
    : run_(run),
      log_(log),
      observer_(observer),
      judges_agreement_(!MayReadOtherTexts(run->config)),
      references_(run->layout.get(), run->initial_snapshot.state_hash()) {}

absl::Status CheckHashes(const v1::UploadHeader& header, const Layout& layout) {
  if (header.tensor_hashes().empty()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(CheckCount(header.tensor_hashes_size(), layout));
  if (CombineTensorHashes(header.tensor_hashes()) == header.state_hash()) return absl::OkStatus();
  return absl::InvalidArgumentError("tensor_hashes: do not combine to the state hash");
}

absl::StatusOr<Integrity::Counts> Audit(const RoundMethod& method, RoundId round,
                                        const ClosedSegment& closed) {
  std::vector<absl::string_view> payloads;
  for (const Contribution& sent : closed.audited) payloads.push_back(*sent.payload);
  DISTRO_ASSIGN_OR_RETURN(const PairCounts pairs,
                          method.Compare({.round = round, .segment = closed.segment}, payloads));
  Integrity::Counts all;
  for (size_t a = 0; a < payloads.size(); ++a) {
    for (size_t b = 0; b < payloads.size(); ++b) {
      // Who is on probation is compared with the others, not they with it: newcomers accuse nobody.
      if (a != b && closed.audited[b].weight > 0)
        all.push_back({closed.audited[a].worker, closed.audited[b].worker, pairs.Of(a, b)});
    }
  }
  return all;
}

absl::Status Integrity::CheckReport(const v1::ReportStateRequest& request) const {
  DISTRO_RETURN_IF_ERROR(CheckCount(request.tensor_hashes_size(), *run_->layout));
  const uint64_t hash = CombineTensorHashes(request.tensor_hashes());
  const uint64_t initial = run_->initial_snapshot.state_hash();
  if (request.round() != 0 || hash == initial) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor_hashes: combine to the state hash ",
                                                 ToHex(hash), ", the run's own snapshot has ",
                                                 ToHex(initial)));
}

void Integrity::AddReport(const v1::ReportStateRequest& request) {
  references_.AddReplay(RoundId(request.round()), request.tensor_hashes());
  LogContradiction(RoundId(request.round()));
}

SegmentId Integrity::DrawAudited(RoundId round, absl::Time now) const {
  const auto seed = static_cast<uint64_t>(absl::ToUnixNanos(now));
  return SegmentId(
      static_cast<uint32_t>(SplitMix64(seed, round.value()) % run_->layout->segments()));
}

void Integrity::AddAudit(RoundId round, const Counts& counts) {
  for (const Comparison& of : counts) agreement_.Add(round, of.worker, of.other, of.counts);
}

void Integrity::Judge(const v1::RoundHeader& header, const Round& round, Membership* members) {
  const std::set<std::string> differ = JudgeStates(header, members);
  for (const v1::Member& member : header.members()) {
    if (!round.Complete(member.name())) {
      if (!member.abstained()) members->Apply(member.name(), MemberEvent::kMissedRound);
    } else if (!differ.contains(member.name())) {
      members->Apply(member.name(), MemberEvent::kGoodUpdate);
    }
  }
  JudgeAgreement(members);
}

std::set<std::string> Integrity::JudgeStates(const v1::RoundHeader& header, Membership* members) {
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
    members->Apply(found.name, event, detail, round);
  }
  LogContradiction(round);
  return differ;
}

void Integrity::JudgeAgreement(Membership* members) {
  if (!judges_agreement_) return;
  const std::optional<std::string> worst = agreement_.Worst();
  if (!worst) return;
  members->Apply(*worst, MemberEvent::kDisagrees, absl::StrCat("score ", AgreementScore(*worst)));
  const Worker* worker = members->Find(*worst);
  if (worker == nullptr || worker->state == v1::MEMBER_STATE_QUARANTINED) agreement_.Remove(*worst);
}

void Integrity::LogContradiction(RoundId round) {
  const std::optional<Contradiction> found = references_.TakeContradiction(round);
  if (!found) return;
  log_->Error("archiver contradicts the workers", {{"round", round.value()},
                                                   {"state_hash", ToHex(found->state_hash)},
                                                   {"reference", ToHex(found->reference)},
                                                   {"tensors", found->tensors}});
  NoteMismatch(Where(round, "an archiver", found->tensors));
}

void Integrity::NoteMismatch(const std::string& where) {
  observer_->OnStateHashMismatch(1);
  mismatch_ = where;
}

}  // namespace distro::server
