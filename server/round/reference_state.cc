#include "server/round/reference_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/replica/replica.h"

namespace distro::server {
namespace {

constexpr size_t kTensorsNamed = 5;
// Tensors' hashes are kept for that many different states of a round: enough to name what differs, and bounded.
constexpr size_t kStatesKept = 8;

}  // namespace

ReferenceState::Round* ReferenceState::Find(RoundId round) {
  const bool full = rounds_.size() >= kReferenceRounds;
  if (full && round.value() < rounds_.begin()->first) return nullptr;
  Round* found = &rounds_[round.value()];
  if (rounds_.size() > kReferenceRounds) rounds_.erase(rounds_.begin());
  return found;
}

void ReferenceState::Keep(Round* round, uint64_t state_hash,
                          absl::Span<const uint64_t> tensor_hashes) const {
  if (tensor_hashes.size() != layout_->tensors().size()) return;
  if (round->tensors.contains(state_hash) || round->tensors.size() == kStatesKept) return;
  if (CombineTensorHashes(tensor_hashes) != state_hash) return;
  round->tensors[state_hash].assign(tensor_hashes.begin(), tensor_hashes.end());
}

void ReferenceState::AddWorker(RoundId round, absl::string_view name, uint64_t state_hash,
                               absl::Span<const uint64_t> tensor_hashes) {
  Round* found = Find(round);
  if (found == nullptr) return;
  found->workers.insert_or_assign(std::string(name), state_hash);
  Keep(found, state_hash, tensor_hashes);
}

void ReferenceState::SetReference(RoundId round, uint64_t state_hash,
                                  absl::Span<const uint64_t> tensor_hashes) {
  Round* found = Find(round);
  if (found == nullptr) given_late_ = {round, state_hash};
  if (found == nullptr) return;
  found->given = state_hash;
  if (found->tensors.size() == kStatesKept) found->tensors.erase(found->tensors.begin());
  Keep(found, state_hash, tensor_hashes);
}

std::optional<uint64_t> ReferenceState::Majority(const Round& round) {
  std::map<uint64_t, size_t> counts;
  for (const auto& [name, hash] : round.workers) ++counts[hash];
  if (round.workers.size() < kMinMajority) return std::nullopt;
  for (const auto& [hash, count] : counts) {
    if (2 * count > round.workers.size()) return hash;
  }
  return std::nullopt;
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

std::string ReferenceState::Differences(const Round& round, uint64_t state_hash,
                                        uint64_t reference) const {
  const auto theirs = round.tensors.find(state_hash);
  const auto right = round.tensors.find(reference);
  if (theirs == round.tensors.end() || right == round.tensors.end()) return "";
  std::vector<size_t> differ;
  for (size_t i = 0; i < right->second.size(); ++i) {
    if (theirs->second[i] != right->second[i]) differ.push_back(i);
  }
  return Names(differ);
}

std::string ReferenceState::Differences(const Round& round) const {
  if (round.tensors.size() < 2) return "";
  const std::vector<uint64_t>& first = round.tensors.begin()->second;
  std::vector<size_t> differ;
  for (size_t i = 0; i < first.size(); ++i) {
    const bool same = std::ranges::all_of(
        round.tensors, [&](const auto& state) { return state.second[i] == first[i]; });
    if (!same) differ.push_back(i);
  }
  return Names(differ);
}

StateVerdict ReferenceState::Judge(RoundId id) const {
  const auto it = rounds_.find(id.value());
  if (it == rounds_.end()) {
    if (!given_late_ || given_late_->first != id) return {};
    return {.source = ReferenceSource::kGiven, .reference = given_late_->second};
  }
  const Round& round = it->second;
  const std::optional<uint64_t> majority = Majority(round);
  const std::optional<uint64_t> reference = round.given ? round.given : majority;
  StateVerdict verdict;
  if (!reference) {
    const bool unanimous = std::ranges::all_of(round.workers, [&](const auto& worker) {
      return worker.second == round.workers.begin()->second;
    });
    if (unanimous) return verdict;
    const std::string tensors = Differences(round);
    for (const auto& [name, hash] : round.workers)
      verdict.disagree.push_back({name, hash, tensors});
    return verdict;
  }
  verdict.source = round.given ? ReferenceSource::kGiven : ReferenceSource::kMajority;
  verdict.reference = *reference;
  verdict.contradicted = majority.has_value() && majority != reference;
  for (const auto& [name, hash] : round.workers) {
    if (hash != *reference)
      verdict.disagree.push_back({name, hash, Differences(round, hash, *reference)});
  }
  return verdict;
}

}  // namespace distro::server
