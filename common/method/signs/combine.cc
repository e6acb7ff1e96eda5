#include "common/method/signs/combine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <utility>

#include "absl/types/span.h"
#include "common/base/random.h"
#include "common/model/layout/matrix.h"

namespace distro {
namespace {

// Selects the votes of one block to keep: those above a magnitude, and of those with exactly that
// magnitude the ones with the smallest tie values. Tie values differ, because Mix is a bijection.
// Uses counting instead of comparisons, which would often be mispredicted.
class BlockTop {
 public:
  BlockTop(uint64_t run_seed, RoundId round) : run_seed_(run_seed), round_(round) {}

  // Appends the kept votes of begin .. end-1, which are more than `keep` > 0, to `result`.
  // `block` counts among all blocks of the run.
  void Append(const Votes& votes, uint32_t begin, uint32_t end, uint32_t keep, uint64_t block,
              Votes* result);

 private:
  static constexpr int kBucketBits = 6;

  uint32_t CountAbove(int magnitude) const;
  // The `keep`-th largest magnitude.
  int LimitMagnitude(uint32_t keep) const;
  // The `count`-th smallest of candidates_[0 .. size).
  uint64_t LastTie(uint32_t size, uint32_t count);

  const uint64_t run_seed_;
  const RoundId round_;

  // Of the block.
  uint32_t size_ = 0;
  std::array<int16_t, kBlockElements> magnitudes_;
  std::array<uint64_t, kBlockElements> ties_;
  std::array<uint64_t, kBlockElements> candidates_;  // ties at the limit
  std::array<uint16_t, kBlockElements> positions_;   // kept
  std::array<int16_t, kBlockElements> values_;
};

void BlockTop::Append(const Votes& votes, uint32_t begin, uint32_t end, uint32_t keep,
                      uint64_t block, Votes* result) {
  size_ = end - begin;
  const uint16_t* const positions = votes.positions.data() + begin;
  const int16_t* const values = votes.values.data() + begin;
  for (uint32_t i = 0; i < size_; ++i)
    magnitudes_[i] = static_cast<int16_t>(std::abs(int{values[i]}));
  const int limit = LimitMagnitude(keep);
  // 12 bits are the position, 26 the block: each (round, block, position) has its own number,
  // whose hash decides ties.
  const uint64_t base = (round_.value() << 38) + (block << 12);
  uint32_t at_limit = 0;
  for (uint32_t i = 0; i < size_; ++i) {
    ties_[i] = SplitMix64(run_seed_, base + positions[i]);
    candidates_[at_limit] = ties_[i];
    at_limit += magnitudes_[i] == limit;
  }
  const uint64_t last_tie = LastTie(at_limit, keep - CountAbove(limit));
  uint32_t kept = 0;
  for (uint32_t i = 0; i < size_; ++i) {
    positions_[kept] = positions[i];
    values_[kept] = values[i];
    kept += (magnitudes_[i] > limit) | ((magnitudes_[i] == limit) & (ties_[i] <= last_tie));
  }
  result->positions.insert(result->positions.end(), positions_.begin(), positions_.begin() + kept);
  result->values.insert(result->values.end(), values_.begin(), values_.begin() + kept);
}

uint32_t BlockTop::CountAbove(int magnitude) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < size_; ++i) count += magnitudes_[i] > magnitude;
  return count;
}

// The smallest magnitude that fewer than `keep` votes exceed: most often 1 or 2.
int BlockTop::LimitMagnitude(uint32_t keep) const {
  int below = 0, limit = 1;
  for (; CountAbove(limit) >= keep; limit *= 2) below = limit;
  while (limit - below > 1) {
    const int middle = (below + limit) / 2;
    (CountAbove(middle) >= keep ? below : limit) = middle;
  }
  return limit;
}

uint64_t BlockTop::LastTie(uint32_t size, uint32_t count) {
  std::array<uint16_t, 1 << kBucketBits> buckets{};
  for (uint32_t i = 0; i < size; ++i) ++buckets[candidates_[i] >> (64 - kBucketBits)];
  uint32_t bucket = 0;
  for (; count > buckets[bucket]; ++bucket) count -= buckets[bucket];
  uint32_t in_bucket = 0;
  for (uint32_t i = 0; i < size; ++i) {
    candidates_[in_bucket] = candidates_[i];
    in_bucket += candidates_[i] >> (64 - kBucketBits) == bucket;
  }
  std::nth_element(candidates_.begin(), candidates_.begin() + count - 1,
                   candidates_.begin() + in_bucket);
  return candidates_[count - 1];
}

}  // namespace

// Extracts a fixed number of positions per word first: most words have few, and a loop of fixed
// length is not mispredicted.
size_t VoteAccumulator::TakePositions(TouchedPositions* positions) {
  constexpr int kUsual = 4;
  size_t count = 0;
  for (; touched_words_ != 0; touched_words_ &= touched_words_ - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(touched_words_));
    uint64_t bits = std::exchange(touched_[word], 0);
    const auto take = [&] {
      (*positions)[count] = static_cast<uint16_t>(word * 64 + std::countr_zero(bits));
      count += bits != 0;
      bits &= bits - 1;
    };
    for (int i = 0; i < kUsual; ++i) take();
    while (bits != 0) take();
  }
  return count;
}

void VoteAccumulator::EmitBlock(Votes* votes) {
  TouchedPositions positions;
  std::array<int16_t, kBlockElements> values;
  const size_t touched = TakePositions(&positions);
  size_t count = 0;
  for (size_t i = 0; i < touched; ++i) {
    const uint16_t position = positions[i];
    positions[count] = position;
    values[count] = std::exchange(sums_[position], 0);
    // Votes that cancel are no entry; without a branch, which would often be mispredicted.
    count += values[count] != 0;
  }
  votes->positions.insert(votes->positions.end(), positions.begin(), positions.begin() + count);
  votes->values.insert(votes->values.end(), values.begin(), values.begin() + count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

Votes KeepTop(const Votes& votes, int keep, uint64_t run_seed, RoundId round, int64_t first_block) {
  Votes result;
  BlockTop top(run_seed, round);
  for (int64_t block = 0; block < votes.blocks(); ++block) {
    const uint32_t begin = votes.offsets[block], end = votes.offsets[block + 1];
    if (static_cast<int64_t>(end - begin) <= keep) {
      result.positions.insert(result.positions.end(), votes.positions.begin() + begin,
                              votes.positions.begin() + end);
      result.values.insert(result.values.end(), votes.values.begin() + begin,
                           votes.values.begin() + end);
    } else if (keep > 0) {
      top.Append(votes, begin, end, keep, first_block + block, &result);
    }
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

}  // namespace distro
