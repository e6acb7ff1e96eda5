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

void DeltaAccumulator::Add(const BlockExtent& extent, const SparseSent& sent) {
  const int64_t value = sent.weight * ScaleOf(sent.code);
  const std::array<int64_t, 2> values = {value, -value};
  const bool whole = extent.Contains(kBlockElements - 1);
  // A block with fewer than K elements inside its tensor fills its record with others.
  for (const uint16_t entry : sent.entries) {
    const uint32_t position = entry % kBlockElements;
    if (whole || extent.Contains(position))
      AddOne(position, values[entry / kBlockElements], sent.weight);
  }
}

void DeltaAccumulator::EmitBlock(DeltaMeans* means) {
  for (uint32_t word = 0; word < touched_.size(); ++word) {
    for (uint64_t bits = std::exchange(touched_[word], 0); bits != 0; bits &= bits - 1) {
      const auto position = static_cast<uint16_t>(word * 64 + std::countr_zero(bits));
      const Sum sum = std::exchange(sums_[position], {});
      const int64_t mean = rounding_.Mean(sum.value, DivisorOf(sum));
      if (mean == 0) continue;  // It is not sent, and stays in the senders' error buffers.
      means->positions.push_back(position);
      means->values.push_back(mean);
    }
  }
  means->offsets.push_back(static_cast<uint32_t>(means->positions.size()));
}

DeltaMeans CombineDeltas(absl::Span<const WeightedDelta> updates,
                         absl::Span<const BlockExtent> extents, const MeanRule& rule) {
  DeltaMeans means;
  DeltaAccumulator accumulator(rule);
  std::vector<int64_t> values;
  for (size_t block = 0; block < extents.size(); ++block) {
    for (const auto& [update, weight] : updates) {
      const auto b = static_cast<int64_t>(block);
      if (update->empty(b)) continue;
      update->ValuesOf(b, &values);
      accumulator.Add(extents[block], update->PositionsOf(b), values, weight);
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
  DeltaBlock block;
  const auto append = [&block](const auto& values, auto* all) {
    all->insert(all->end(), values.begin(), values.begin() + block.count);
  };
  for (int64_t b = 0; b < means.blocks(); ++b) {
    RoundBlock(means, b, &block);
    append(block.positions, &result.positions);
    append(block.signs, &result.signs);
    append(block.levels, &result.levels);
    result.codes.push_back(block.code);
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

void RoundBlock(const DeltaMeans& means, int64_t block, DeltaBlock* result) {
  const uint32_t begin = means.offsets[block], end = means.offsets[block + 1];
  int64_t largest = 0;
  for (uint32_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(means.values[i]));
  result->code = CoveringScale(largest);
  const LevelBounds levels(result->code);
  uint32_t count = 0;
  for (uint32_t i = begin; i < end; ++i) {
    const uint8_t level = levels.LevelOf(std::abs(means.values[i]));
    result->positions[count] = means.positions[i];
    result->signs[count] = static_cast<int8_t>(means.values[i] < 0 ? -1 : 1);
    result->levels[count] = level;
    // Too small for the lowest level: stays in the error buffers, as if it had not been sent.
    count += level < kLevels ? 1 : 0;
  }
  result->count = count;
}

}  // namespace distro
