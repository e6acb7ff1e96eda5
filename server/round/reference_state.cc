#include "server/round/reference_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/run/record/log_reference.h"

namespace distro::server {
namespace {

constexpr size_t kTensorsNamed = 5;
// Different states of a round for which tensors' hashes are kept: enough to name what differs.
constexpr size_t kStatesKept = 8;

// All members that reported a hash reported the same.
bool Unanimous(const v1::RoundHeader& header) {
  std::optional<uint64_t> first;
  return std::ranges::all_of(header.members(), [&](const v1::Member& member) {
    if (!member.has_state_hash()) return true;
    if (!first) first = member.state_hash();
    return member.state_hash() == *first;
  });
}

}  // namespace

ReferenceState::RoundHashes* ReferenceState::Find(RoundId round) {
  const bool full = rounds_.size() >= kReferenceRounds;
  if (full && round.value() < rounds_.begin()->first) return nullptr;
  RoundHashes* found = &rounds_[round.value()];
  if (rounds_.size() > kReferenceRounds) rounds_.erase(rounds_.begin());
  return found;
}

void ReferenceState::AddTensors(RoundId round, uint64_t state_hash,
                                absl::Span<const uint64_t> tensor_hashes) {
  RoundHashes* found = Find(round);
  if (found == nullptr || tensor_hashes.size() != layout_->tensors().size()) return;
  if (found->tensors.contains(state_hash) || found->tensors.size() == kStatesKept) return;
  if (CombineTensorHashes(tensor_hashes) != state_hash) return;
  found->tensors[state_hash].assign(tensor_hashes.begin(), tensor_hashes.end());
}

void ReferenceState::AddReplay(RoundId round, absl::Span<const uint64_t> tensor_hashes) {
  if (RoundHashes* found = Find(round))
    found->replay.emplace(tensor_hashes.begin(), tensor_hashes.end());
}

StateVerdict ReferenceState::Commit(const v1::RoundHeader& header) {
  StateVerdict verdict;
  const bool first = header.round() == 0;
  verdict.reference = first ? LogReference{initial_state_hash_, true} : ReferenceOf(header);
  RoundHashes* const found = Find(RoundId(header.round()));
  if (found == nullptr) return verdict;
  found->reference = verdict.reference;
  if (!verdict.reference && Unanimous(header)) return verdict;
  const std::string all = verdict.reference ? "" : Differences(*found);
  for (const v1::Member& member : header.members()) {
    const uint64_t hash = member.state_hash();
    if (!member.has_state_hash()) continue;
    if (verdict.reference && hash == verdict.reference->state_hash) continue;
    const auto theirs = found->tensors.find(hash);
    const TensorHashes* tensors = theirs == found->tensors.end() ? nullptr : &theirs->second;
    verdict.disagree.push_back(
        {member.name(), hash,
         verdict.reference ? Differences(*found, tensors, verdict.reference->state_hash) : all});
  }
  return verdict;
}

std::optional<Contradiction> ReferenceState::TakeContradiction(RoundId round) {
  const auto it = rounds_.find(round.value());
  if (it == rounds_.end()) return std::nullopt;
  RoundHashes& known = it->second;
  if (!known.replay || !known.reference || known.told) return std::nullopt;
  const uint64_t hash = CombineTensorHashes(*known.replay);
  const uint64_t reference = known.reference->state_hash;
  if (hash == reference) return std::nullopt;
  known.told = true;
  return Contradiction{hash, reference, Differences(known, &*known.replay, reference)};
}

std::string ReferenceState::Names(const std::vector<size_t>& tensors) const {
  std::string names;
  for (size_t i = 0; i < std::min(tensors.size(), kTensorsNamed); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ", layout_->manifest().tensors()[tensors[i]].name);
  }
  if (tensors.size() > kTensorsNamed)
    absl::StrAppend(&names, " and ", tensors.size() - kTensorsNamed, " more");
  return names;
}

std::string ReferenceState::Differences(const RoundHashes& round, const TensorHashes* theirs,
                                        uint64_t reference) const {
  const auto right = round.tensors.find(reference);
  if (theirs == nullptr || right == round.tensors.end()) return "";
  std::vector<size_t> differ;
  for (size_t i = 0; i < right->second.size(); ++i) {
    if ((*theirs)[i] != right->second[i]) differ.push_back(i);
  }
  return Names(differ);
}

std::string ReferenceState::Differences(const RoundHashes& round) const {
  if (round.tensors.size() < 2) return "";
  const TensorHashes& first = round.tensors.begin()->second;
  std::vector<size_t> differ;
  for (size_t i = 0; i < first.size(); ++i) {
    const bool same = std::ranges::all_of(
        round.tensors, [&](const auto& state) { return state.second[i] == first[i]; });
    if (!same) differ.push_back(i);
  }
  return Names(differ);
}

}  // namespace distro::server
