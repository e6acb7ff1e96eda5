#include "common/round/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/codec/update_reader.h"

namespace distro {
namespace {

constexpr double kSuspiciousDeviations = 6;

// Positions of both ascend. A coefficient that `votes` does not list sums to zero.
void CountBlock(absl::Span<const uint16_t> positions, absl::Span<const int8_t> signs, int weight,
                absl::Span<const uint16_t> summed, absl::Span<const int16_t> values,
                AgreementCounts* counts) {
  size_t v = 0;
  for (size_t i = 0; i < positions.size() && signs[i] != 0; ++i) {
    while (v < summed.size() && summed[v] < positions[i]) ++v;
    const int sum = v < summed.size() && summed[v] == positions[i] ? values[v] : 0;
    const int others = (sum - weight * signs[i]) * signs[i];
    if (others > 0) ++counts->agree;
    if (others < 0) ++counts->disagree;
  }
}

// Whether the worker disagrees more often than is typical, by more than this number of the margins
// of Suspicious.
bool Opposes(const AgreementCounts& counts, double typical, double margins) {
  const auto votes = static_cast<double>(counts.common());
  const double opposes =
      static_cast<double>(counts.disagree) - static_cast<double>(counts.agree) + typical * votes;
  return counts.common() >= kMinCommonVotes &&
         opposes > margins * kSuspiciousDeviations * std::sqrt(votes) &&
         opposes > margins * votes / 10;
}

}  // namespace

double AgreementCounts::Score() const {
  if (common() == 0) return 0;
  const double difference = static_cast<double>(agree) - static_cast<double>(disagree);
  return difference / std::sqrt(static_cast<double>(common()));
}

double AgreementCounts::Share() const {
  return common() == 0 ? 0 : Score() / std::sqrt(static_cast<double>(common()));
}

bool Suspicious(const AgreementCounts& counts, double typical) {
  return Opposes(counts, typical, /*margins=*/1);
}

bool Doubtful(const AgreementCounts& counts, double typical) {
  return Opposes(counts, typical, /*margins=*/0.5);
}

absl::StatusOr<AgreementCounts> CompareWithOthers(absl::string_view payload,
                                                  const PayloadExpectation& expected, int weight,
                                                  const Votes& votes) {
  DISTRO_ASSIGN_OR_RETURN(UpdateReader reader, UpdateReader::Create(payload, expected));
  AgreementCounts counts;
  for (uint32_t b = 0; b < expected.blocks; ++b) {
    absl::Span<const uint16_t> positions;
    absl::Span<const int8_t> signs;
    DISTRO_RETURN_IF_ERROR(reader.NextBlock(&positions, &signs));
    const size_t first = votes.offsets[b];
    const size_t entries = votes.offsets[b + 1] - first;
    CountBlock(positions, signs, weight, absl::MakeSpan(votes.positions).subspan(first, entries),
               absl::MakeSpan(votes.values).subspan(first, entries), &counts);
  }
  return counts;
}

void CompareSent(const BlockExtent& extent, absl::Span<const SentBlock> sent,
                 absl::Span<AgreementCounts> counts) {
  std::array<int64_t, kBlockElements> sums{};
  const auto for_each = [&](auto work) {
    for (size_t w = 0; w < sent.size(); ++w) {
      for (size_t i = 0; i < sent[w].positions.size(); ++i) {
        const uint16_t position = sent[w].positions[i];
        if (extent.Contains(position)) work(w, sums[position], sent[w].values[i]);
      }
    }
  };
  for_each([&](size_t w, int64_t& sum, int64_t value) { sum += sent[w].weight * value; });
  for_each([&](size_t w, const int64_t& sum, int64_t value) {
    const int64_t others = sum - sent[w].weight * value;
    if (others == 0 || value == 0) return;
    ++((others > 0) == (value > 0) ? counts[w].agree : counts[w].disagree);
  });
}

std::vector<AgreementCounts> CompareDeltas(absl::Span<const WeightedDelta> updates,
                                           absl::Span<const BlockExtent> extents) {
  std::vector<AgreementCounts> counts(updates.size());
  std::vector<std::vector<int64_t>> values(updates.size());
  std::vector<SentBlock> sent(updates.size());
  for (size_t block = 0; block < extents.size(); ++block) {
    for (size_t w = 0; w < updates.size(); ++w) {
      const DeltaUpdate& update = *updates[w].update;
      update.ValuesOf(static_cast<int64_t>(block), &values[w]);
      sent[w] = {.positions = update.PositionsOf(static_cast<int64_t>(block)),
                 .values = values[w],
                 .weight = updates[w].weight};
    }
    CompareSent(extents[block], sent, absl::MakeSpan(counts));
  }
  return counts;
}

void Agreement::DropBefore(uint64_t round) {
  for (auto it = workers_.begin(); it != workers_.end();) {
    Window& window = it->second;
    while (!window.rounds.empty() && window.rounds.front().first < round) {
      window.sum.agree -= window.rounds.front().second.agree;
      window.sum.disagree -= window.rounds.front().second.disagree;
      window.rounds.pop_front();
    }
    it = window.rounds.empty() ? workers_.erase(it) : std::next(it);
  }
}

void Agreement::Add(RoundId round, absl::string_view name, const AgreementCounts& counts) {
  if (round.value() > newest_) {
    newest_ = round.value();
    if (newest_ >= kAgreementRounds) DropBefore(newest_ - kAgreementRounds + 1);
  }
  Window& window = workers_[std::string(name)];
  if (window.rounds.empty() || window.rounds.back().first != round.value())
    window.rounds.emplace_back(round.value(), AgreementCounts{});
  for (AgreementCounts* to : {&window.rounds.back().second, &window.sum}) {
    to->agree += counts.agree;
    to->disagree += counts.disagree;
  }
}

AgreementCounts Agreement::Of(absl::string_view name) const {
  const auto it = workers_.find(name);
  return it == workers_.end() ? AgreementCounts{} : it->second.sum;
}

std::optional<double> Agreement::Typical() const {
  std::vector<double> shares;  // of those that are judged
  for (const auto& [name, window] : workers_) {
    if (window.sum.common() >= kMinCommonVotes) shares.push_back(window.sum.Share());
  }
  if (shares.size() < kMinJudgedWorkers) return std::nullopt;
  return std::min(0.0, LowerMedian(std::move(shares)));
}

bool Agreement::Doubts(absl::string_view name) const {
  const std::optional<double> typical = Typical();
  return typical.has_value() && Doubtful(Of(name), *typical);
}

std::optional<std::string> Agreement::Worst() const {
  const std::optional<double> typical = Typical();
  if (!typical.has_value()) return std::nullopt;
  std::optional<std::string> worst;
  double lowest = 0;
  for (const auto& [name, window] : workers_) {
    if (!Suspicious(window.sum, *typical) || window.sum.Score() >= lowest) continue;
    lowest = window.sum.Score();
    worst = name;
  }
  return worst;
}

}  // namespace distro
