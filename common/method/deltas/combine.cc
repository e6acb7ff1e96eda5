#include "common/method/deltas/combine.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "absl/numeric/int128.h"
#include "common/base/random.h"
#include "common/method/deltas/scale.h"

namespace distro {

MeanRounding::MeanRounding(int64_t most) {
  reciprocals_.resize(std::clamp<int64_t>(most, 0, kMostReciprocals) + 1);
  for (size_t divisor = 1; divisor < reciprocals_.size(); ++divisor)
    reciprocals_[divisor] = UINT64_MAX / divisor;
}

int64_t MeanRounding::Mean(int64_t sum, int64_t divisor) const {
  const auto d = static_cast<uint64_t>(divisor);
  // floor((2 |S| + D) / (2 D)) = floor((|S| + floor(D / 2)) / D), below 2^63.
  const uint64_t dividend = static_cast<uint64_t>(std::abs(sum)) + d / 2;
  uint64_t mean;
  if (d < reciprocals_.size()) {
    // The reciprocal is less than 1/D by at most 1 in 2^64, and the dividend is below 2^63: the
    // product's upper half is the quotient or one less.
    mean = absl::Uint128High64(absl::uint128(dividend) * reciprocals_[d]);
    mean += dividend - mean * d >= d ? 1 : 0;
  } else {
    mean = dividend / d;
  }
  return sum < 0 ? -static_cast<int64_t>(mean) : static_cast<int64_t>(mean);
}

void DeltaAccumulator::Add(const BlockExtent& extent, absl::Span<const uint16_t> positions,
                           absl::Span<const int64_t> values, int weight) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if (extent.Contains(positions[i])) AddOne(positions[i], weight * values[i], weight);
  }
}

void DeltaAccumulator::Add(const BlockExtent& extent, absl::Span<const uint16_t> positions,
                           absl::Span<const int8_t> signs, int64_t scale, int weight) {
  const int64_t value = weight * scale;
  const bool whole = extent.Contains(kBlockElements - 1);
  // A block with fewer than K elements inside its tensor fills its record with others.
  for (size_t i = 0; i < positions.size(); ++i) {
    if (whole || extent.Contains(positions[i])) AddOne(positions[i], signs[i] * value, weight);
  }
}

void DeltaAccumulator::EmitBlock(DeltaMeans* means) {
  const size_t begin = means->positions.size();
  size_t sent = 0;
  for (const uint64_t word : touched_) sent += static_cast<size_t>(std::popcount(word));
  means->positions.resize(begin + sent);
  means->values.resize(begin + sent);
  size_t end = begin;
  for (uint32_t word = 0; word < touched_.size(); ++word) {
    for (uint64_t bits = std::exchange(touched_[word], 0); bits != 0; bits &= bits - 1) {
      const auto position = static_cast<uint16_t>(word * 64 + std::countr_zero(bits));
      const Sum sum = std::exchange(sums_[position], {});
      // The floor limits what a single sender moves alone.
      const int64_t divisor = rule_.divisor == Divisor::kAll
                                  ? rule_.weights
                                  : std::max(sum.weight, rule_.least_senders);
      means->positions[end] = position;
      means->values[end] = rounding_.Mean(sum.value, divisor);
      // A sum that cancels is not sent, and stays in the senders' error buffers.
      end += means->values[end] != 0 ? 1 : 0;
    }
  }
  means->positions.resize(end);
  means->values.resize(end);
  means->offsets.push_back(static_cast<uint32_t>(end));
}

DeltaMeans CombineDeltas(absl::Span<const WeightedDelta> updates,
                         absl::Span<const BlockExtent> extents, const MeanRule& rule) {
  DeltaMeans means;
  DeltaAccumulator accumulator(rule);
  for (size_t block = 0; block < extents.size(); ++block) {
    for (const auto& [update, weight] : updates) {
      const auto b = static_cast<int64_t>(block);
      if (update->empty(b)) continue;
      accumulator.Add(extents[block], update->PositionsOf(b), update->SignsOf(b),
                      ScaleOf(update->codes[block]), weight);
    }
    accumulator.EmitBlock(&means);
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
  AppendLevels(means, &result);
  return result;
}

void AppendLevels(const DeltaMeans& means, DeltaResult* result) {
  size_t kept = result->positions.size();
  const size_t most = kept + means.positions.size();
  result->positions.resize(most);
  result->signs.resize(most);
  result->levels.resize(most);
  std::array<int64_t, kBlockElements> magnitudes;
  std::array<uint8_t, kBlockElements> levels;
  for (int64_t block = 0; block < means.blocks(); ++block) {
    const uint32_t begin = means.offsets[block], count = means.offsets[block + 1] - begin;
    int64_t largest = 0;
    for (uint32_t i = 0; i < count; ++i) {
      magnitudes[i] = std::abs(means.values[begin + i]);
      largest = std::max(largest, magnitudes[i]);
    }
    const uint8_t code = CoveringScale(largest);
    LevelBounds(code).LevelsOf(magnitudes.data(), count, levels.data());
    for (uint32_t i = 0; i < count; ++i) {
      result->positions[kept] = means.positions[begin + i];
      result->signs[kept] = static_cast<int8_t>(means.values[begin + i] < 0 ? -1 : 1);
      result->levels[kept] = levels[i];
      // Too small for the lowest level: stays in the error buffers, as if it had not been sent.
      kept += levels[i] < kLevels ? 1 : 0;
    }
    result->codes.push_back(code);
    result->offsets.push_back(static_cast<uint32_t>(kept));
  }
  result->positions.resize(kept);
  result->signs.resize(kept);
  result->levels.resize(kept);
}

}  // namespace distro
