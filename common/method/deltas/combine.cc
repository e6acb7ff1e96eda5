#include "common/method/deltas/combine.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "common/base/random.h"
#include "common/method/deltas/scale.h"

namespace distro {

inline void DeltaAccumulator::AddOne(const BlockExtent& extent, uint32_t position, int64_t value,
                                     int weight) {
  // A block with fewer than K elements inside its tensor fills its record with positions outside.
  if (!extent.Contains(static_cast<int>(position))) return;
  sums_[position] += value;
  weights_[position] += weight;
  touched_[position / 64] |= uint64_t{1} << (position % 64);
}

void DeltaAccumulator::Add(const BlockExtent& extent, absl::Span<const uint16_t> positions,
                           absl::Span<const int64_t> values, int weight) {
  for (size_t i = 0; i < positions.size(); ++i)
    AddOne(extent, positions[i], weight * values[i], weight);
}

void DeltaAccumulator::Add(const BlockExtent& extent, absl::Span<const uint16_t> positions,
                           absl::Span<const int8_t> signs, int64_t scale, int weight) {
  for (size_t i = 0; i < positions.size(); ++i)
    AddOne(extent, positions[i], weight * signs[i] * scale, weight);
}

int64_t RoundedMean(int64_t sum, int64_t divisor) {
  const auto magnitude = static_cast<uint64_t>(std::abs(sum)), d = static_cast<uint64_t>(divisor);
  const auto mean = static_cast<int64_t>((2 * magnitude + d) / (2 * d));
  return sum < 0 ? -mean : mean;
}

void DeltaAccumulator::EmitBlock(const MeanRule& rule, DeltaMeans* means) {
  for (uint32_t word = 0; word < touched_.size(); ++word) {
    for (uint64_t bits = std::exchange(touched_[word], 0); bits != 0; bits &= bits - 1) {
      const auto position = static_cast<uint16_t>(word * 64 + std::countr_zero(bits));
      const int64_t sum = std::exchange(sums_[position], 0);
      const int64_t senders = std::exchange(weights_[position], 0);
      // The floor limits what a single sender moves alone.
      const int64_t divisor =
          rule.divisor == Divisor::kAll ? rule.weights : std::max(senders, rule.least_senders);
      const int64_t mean = RoundedMean(sum, divisor);
      // Cancelled: not sent, and kept in the senders' error buffers.
      if (mean == 0) continue;
      means->positions.push_back(position);
      means->values.push_back(mean);
    }
  }
  means->offsets.push_back(static_cast<uint32_t>(means->positions.size()));
}

DeltaMeans CombineDeltas(absl::Span<const WeightedDelta> updates,
                         absl::Span<const BlockExtent> extents, const MeanRule& rule) {
  DeltaMeans means;
  DeltaAccumulator accumulator;
  for (size_t block = 0; block < extents.size(); ++block) {
    for (const auto& [update, weight] : updates) {
      const auto b = static_cast<int64_t>(block);
      if (update->empty(b)) continue;
      accumulator.Add(extents[block], update->PositionsOf(b), update->SignsOf(b),
                      ScaleOf(update->codes[block]), weight);
    }
    accumulator.EmitBlock(rule, &means);
  }
  return means;
}

DeltaMeans KeepLargest(const DeltaMeans& means, int keep, uint64_t run_seed, RoundId round,
                       int64_t first_block) {
  struct Candidate {
    int64_t magnitude;
    uint64_t tie;
    uint32_t entry;
  };
  const auto goes_first = [](const Candidate& a, const Candidate& b) {
    return a.magnitude != b.magnitude ? a.magnitude > b.magnitude : a.tie < b.tie;
  };
  DeltaMeans kept;
  std::vector<Candidate> candidates;
  for (int64_t block = 0; block < means.blocks(); ++block) {
    // 12 bits are the position, 26 the block: each (round, block, position) has its own number,
    // whose hash decides ties.
    const uint64_t base =
        (round.value() << 38) + (static_cast<uint64_t>(first_block + block) << 12);
    candidates.clear();
    for (uint32_t i = means.offsets[block]; i < means.offsets[block + 1]; ++i) {
      candidates.push_back({.magnitude = std::abs(means.values[i]),
                            .tie = SplitMix64(run_seed, base + means.positions[i]),
                            .entry = i});
    }
    if (candidates.size() > static_cast<size_t>(keep)) {
      std::nth_element(candidates.begin(), candidates.begin() + keep, candidates.end(), goes_first);
      candidates.resize(keep);
      // Back to ascending positions, which gaps need.
      std::ranges::sort(candidates, {}, &Candidate::entry);
    }
    for (const Candidate& candidate : candidates) {
      kept.positions.push_back(means.positions[candidate.entry]);
      kept.values.push_back(means.values[candidate.entry]);
    }
    kept.offsets.push_back(static_cast<uint32_t>(kept.positions.size()));
  }
  return kept;
}

DeltaResult RoundToLevels(const DeltaMeans& means) {
  DeltaResult result;
  for (int64_t block = 0; block < means.blocks(); ++block) {
    const uint32_t begin = means.offsets[block], end = means.offsets[block + 1];
    int64_t largest = 0;
    for (uint32_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(means.values[i]));
    const uint8_t code = CoveringScale(largest);
    for (uint32_t i = begin; i < end; ++i) {
      const int level = LevelOf(std::abs(means.values[i]), code);
      // Too small for the lowest level: stays in the error buffers, as if it had not been sent.
      if (level == kLevels) continue;
      result.positions.push_back(means.positions[i]);
      result.signs.push_back(means.values[i] < 0 ? int8_t{-1} : int8_t{1});
      result.levels.push_back(static_cast<uint8_t>(level));
    }
    result.codes.push_back(code);
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

}  // namespace distro
