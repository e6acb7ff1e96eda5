#include "server/round/round.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/run/local_data.h"
#include "common/run/sample_pool.h"

namespace distro::server {

Round::Round(RoundId id, uint32_t segments, std::vector<v1::Slot> slots, absl::Duration opened_at,
             SegmentId audited, v1::StepParameters step, Weighing weighing)
    : id_(id),
      opened_at_(opened_at),
      audited_(audited),
      step_(std::move(step)),
      weighing_(weighing),
      segments_(segments) {
  for (const v1::Slot& slot : slots) Insert(slot, /*added=*/false);
}

int Round::IndexOf(absl::string_view worker) const {
  const auto it = std::ranges::lower_bound(slots_, worker, std::less<>(), &v1::Slot::worker);
  return it == slots_.end() || it->worker() != worker ? -1 : static_cast<int>(it - slots_.begin());
}

void Round::AddSlots(const std::vector<v1::Slot>& slots) {
  for (const v1::Slot& slot : slots) Insert(slot, /*added=*/true);
}

void Round::Insert(const v1::Slot& slot, bool added) {
  const auto it = std::ranges::lower_bound(slots_, slot.worker(), std::less<>(), &v1::Slot::worker);
  const auto index = it - slots_.begin();
  slots_.insert(it, slot);
  contributors_.insert(contributors_.begin() + index,
                       Contributor{.added = added, .pieces = std::vector<Piece>(segments_.size())});
}

void Round::SetExpected(const Membership& membership) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Worker* worker = membership.Find(slots_[i].worker());
    contributors_[i].expected = worker != nullptr && worker->state == v1::MEMBER_STATE_ACTIVE &&
                                WeightOf(contributors_[i], worker) > 0;
  }
  if (weighing_.by_data) WeighByData(membership);
}

void Round::WeighByData(const Membership& membership) {
  std::vector<uint64_t> own_tokens;
  for (const v1::Slot& slot : slots_) {
    const Worker* worker = membership.Find(slot.worker());
    own_tokens.push_back(worker == nullptr ? 0 : worker->own_tokens);
  }
  const std::vector<int> weights = DataWeights(own_tokens);
  for (size_t i = 0; i < weights.size(); ++i) contributors_[i].data_weight = weights[i];
}

void Round::StopWaitingFor(absl::string_view worker) {
  if (const int index = IndexOf(worker); index >= 0) contributors_[index].expected = false;
}

void Round::EndProbation(absl::string_view worker) {
  const int index = IndexOf(worker);
  if (index >= 0 && contributors_[index].began)
    contributors_[index].weight = contributors_[index].full_weight;
}

void Round::RemovePayloads(absl::string_view worker) {
  StopWaitingFor(worker);
  const int index = IndexOf(worker);
  if (index < 0) return;
  Contributor& contributor = contributors_[index];
  bool counted = false;
  for (size_t s = 0; s < segments_.size(); ++s) {
    // What is closed may have been streamed already.
    if (!segments_[s].closed) contributor.pieces[s] = Piece{};
    counted |= contributor.pieces[s].in;
  }
  if (!counted) {
    contributor = Contributor{.added = contributor.added,
                              .data_weight = contributor.data_weight,
                              .pieces = std::vector<Piece>(segments_.size())};
  }
}

int Round::WeightOf(const Contributor& contributor, const Worker* worker) {
  if (contributor.any_in()) return contributor.weight;
  return worker != nullptr && worker->in_session() && worker->probation_left > 0 ? 0 : 1;
}

bool Round::Counts(absl::string_view worker) const {
  const int index = IndexOf(worker);
  return index >= 0 && contributors_[index].weight > 0;
}

int Round::expected() const {
  return static_cast<int>(
      std::ranges::count_if(contributors_, [](const Contributor& c) { return c.expected; }));
}

absl::Status Round::Conflict(absl::string_view worker, absl::string_view what) const {
  return ErrorWithReason(absl::StatusCode::kAlreadyExists, "conflict",
                         absl::StrCat("round ", id_.value(), ": worker ", worker, ": ", what));
}

absl::Status Round::BeginUpload(const v1::UploadHeader& header, Restrictions restrictions) {
  const std::string& name = header.worker().name();
  const int index = IndexOf(name);
  if (index < 0) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "no_samples",
        absl::StrCat("round ", id_.value(), ": worker ", name, ": no samples in this round"));
  }
  Contributor& contributor = contributors_[index];
  const bool changes =
      contributor.abstained ? !header.abstain() : header.abstain() && contributor.any_in();
  if (changes) {
    return Conflict(name, contributor.abstained ? "it abstained" : "it sent an update");
  }
  const UpdateClaim claim{.local_steps = header.local_steps(),
                          .first_sample = header.first_sample(),
                          .abstain = header.abstain()};
  DISTRO_RETURN_IF_ERROR(CheckClaim(weighing_, claim, slots_[index]));
  if (contributor.any_in() && header.local_steps() != contributor.local_steps)
    return Conflict(name, absl::StrCat("its update is of ", contributor.local_steps,
                                       " local steps, not ", header.local_steps()));
  contributor.abstained = header.abstain();
  // A member's weight, hash and loss are those of its first upload, whichever process sends the
  // rest.
  if (contributor.any_in()) return absl::OkStatus();
  contributor.began = true;
  contributor.local_steps = header.local_steps();
  contributor.full_weight = restrictions.doubted ? 1
                                                 : distro::WeightOf(weighing_, header.local_steps(),
                                                                    contributor.data_weight);
  contributor.weight = restrictions.probation ? 0 : contributor.full_weight;
  contributor.state_hash = header.state_hash();
  contributor.loss = header.loss();
  return absl::OkStatus();
}

std::vector<uint32_t> Round::Held(absl::string_view worker) const {
  std::vector<uint32_t> held;
  const int index = IndexOf(worker);
  for (uint32_t s = 0; s < segments_.size(); ++s) {
    if (segments_[s].closed || (index >= 0 && contributors_[index].pieces[s].in)) held.push_back(s);
  }
  return held;
}

absl::StatusOr<PutResult> Round::PreviewPut(absl::string_view worker, SegmentId segment,
                                            const ReceivedPayload& payload) const {
  const Contributor& contributor = contributors_[IndexOf(worker)];
  const Piece& piece = contributor.pieces[segment.value()];
  if (contributor.abstained) return Conflict(worker, "it abstained");
  if (piece.in) {
    // Sent again, for example because the acknowledgement was lost.
    if (piece.xxh3 == payload.xxh3 && piece.size == payload.bytes->size()) return PutResult::kAgain;
    return Conflict(worker,
                    absl::StrCat("segment ", segment.value(), ": other bytes were sent before"));
  }
  return segments_[segment.value()].closed ? PutResult::kLate : PutResult::kNew;
}

absl::StatusOr<PutResult> Round::Put(const v1::WorkerIdentity& worker, SegmentId segment,
                                     ReceivedPayload payload, absl::Duration now) {
  DISTRO_ASSIGN_OR_RETURN(const PutResult result, PreviewPut(worker.name(), segment, payload));
  if (result != PutResult::kNew) return result;
  Contributor& contributor = contributors_[IndexOf(worker.name())];
  // The process that sends first has the update: another of this name subtracts nothing.
  if (!contributor.any_in()) contributor.incarnation = worker.incarnation();
  segments_[segment.value()].last_in = now;
  contributor.pieces[segment.value()] = {.in = true,
                                         .xxh3 = payload.xxh3,
                                         .size = payload.bytes->size(),
                                         .payload = std::move(payload.bytes)};
  return PutResult::kNew;
}

bool Round::Complete(absl::string_view worker) const {
  const int index = IndexOf(worker);
  return index >= 0 && std::ranges::all_of(contributors_[index].pieces,
                                           [](const Piece& piece) { return piece.in; });
}

bool Round::Finished(absl::string_view worker) const {
  return IndexOf(worker) >= 0 && Held(worker).size() == segments_.size();
}

RoundFacts Round::Facts(const Membership& membership) const {
  RoundFacts facts{.round = id_, .opened_at = opened_at_, .workers = {}, .segments = {}};
  for (const Segment& segment : segments_)
    facts.segments.push_back({.closed = segment.closed, .in = {}});
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Contributor& contributor = contributors_[i];
    const Worker* worker = membership.Find(slots_[i].worker());
    facts.workers.push_back({.name = slots_[i].worker(),
                             .expected = contributor.expected,
                             .in_session = worker != nullptr && worker->in_session(),
                             .abstained = contributor.abstained,
                             .counts = WeightOf(contributor, worker) > 0});
    for (size_t s = 0; s < segments_.size(); ++s)
      facts.segments[s].in.push_back(contributor.pieces[s].in);
  }
  return facts;
}

std::vector<Contribution> Round::Audited() const {
  std::vector<Contribution> contributions;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Piece& piece = contributors_[i].pieces[audited_.value()];
    if (piece.payload == nullptr) continue;
    contributions.push_back({slots_[i].worker(), contributors_[i].weight, piece.payload});
  }
  return contributions;
}

std::vector<SentPayload> Round::Close(SegmentId segment) {
  std::vector<SentPayload> payloads;
  for (Contributor& contributor : contributors_) {
    Piece& piece = contributor.pieces[segment.value()];
    SharedBytes payload = std::move(piece.payload);
    piece.included = payload != nullptr && contributor.weight > 0;
    if (piece.included) payloads.push_back({std::move(payload), contributor.weight});
  }
  segments_[segment.value()].closed = true;
  return payloads;
}

void Round::SetResult(SegmentId segment, const SegmentResult& result) {
  segments_[segment.value()].result = {.payload_bytes = result.payload->size(),
                                       .checksum = result.checksum,
                                       .sha256 = result.sha256};
  auto codes = result.largest_codes.begin();
  for (Contributor& contributor : contributors_) {
    if (codes == result.largest_codes.end()) break;
    if (contributor.pieces[segment.value()].included) AddLargestCodes(*codes++, &contributor.codes);
  }
}

std::vector<std::string> Round::Missing(SegmentId segment) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Contributor& contributor = contributors_[i];
    if (contributor.expected && !contributor.abstained && !contributor.pieces[segment.value()].in) {
      names.push_back(slots_[i].worker());
    }
  }
  return names;
}

RoundOutcome Round::Outcome(const Membership& membership, const RoundMethod& method,
                            absl::Span<const uint32_t> medians) const {
  RoundOutcome outcome{.round = id_, .members = {}, .segments = {}};
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Contributor& contributor = contributors_[i];
    const Worker* worker = membership.Find(slots_[i].worker());
    auto& [member, included] = outcome.members.emplace_back();
    member.set_name(slots_[i].worker());
    member.set_incarnation(contributor.incarnation);
    member.set_weight(WeightOf(contributor, worker));
    member.set_state(worker != nullptr ? worker->state : v1::MEMBER_STATE_LEFT);
    if (worker != nullptr) {
      member.set_state_reason(worker->reason);
      member.set_probation_left(worker->probation_left);
    }
    member.set_abstained(contributor.abstained);
    if (contributor.any_in()) member.set_local_steps(contributor.local_steps);
    if (contributor.added) *member.mutable_given() = RangesOf(slots_[i]);
    if (contributor.began) member.set_state_hash(contributor.state_hash);
    for (const Piece& piece : contributor.pieces) included.push_back(piece.included);
  }
  for (const Segment& segment : segments_) outcome.segments.push_back(segment.result);
  outcome.step = step_;
  std::vector<LargestCodes> codes;
  for (const Contributor& contributor : contributors_) codes.push_back(contributor.codes);
  outcome.scale_medians = method.ScaleMedians(codes, medians);
  return outcome;
}

std::optional<double> Round::MeanLoss() const {
  double sum = 0;
  int count = 0;
  for (const Contributor& contributor : contributors_) {
    if (contributor.weight == 0 || !contributor.any_in() || !std::isfinite(contributor.loss))
      continue;
    sum += contributor.loss;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

int Round::contributors() const {
  return static_cast<int>(std::ranges::count_if(
      contributors_, [](const Contributor& c) { return c.any_in() && c.weight > 0; }));
}

}  // namespace distro::server
