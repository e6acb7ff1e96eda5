// Combines deltas (docs/algorithm.md, "Deltas"): computes the weighted mean of the workers' values
// at each position in integers, keeps the largest, and rounds them to levels. Pure; the order of
// the workers does not matter.
//
//   DeltaMeans means = CombineDeltas(updates, extents, rule);     // r, in units of 2^-44
//   means = KeepLargest(means, keep, seed, round, first_block);   // when results are cut
//   DeltaResult result = RoundToLevels(means);                    // what everybody downloads
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/matrix.h"

namespace distro {

// The largest sum of the weights of a round's updates: the sums below then stay under 2^62.
inline constexpr int64_t kMaxDeltaWeights = int64_t{1} << 19;

enum class Divisor {
  kSenders,  // the mean over the workers that sent the position
  kAll,      // the mean over all included workers
};

// How sums become means.
struct MeanRule {
  Divisor divisor = Divisor::kSenders;
  int64_t weights = 0;        // N: the sum over all workers included in the segment
  int64_t least_senders = 0;  // C_min: the smallest divisor of a position's sum
};

// C_min for weights that sum to N: N * floor_256 / 256, rounded up. Requires 0 <= floor_256 <= 256;
// 0 is no floor.
constexpr int64_t LeastSenders(int64_t weights, int floor_256) {
  return (weights * floor_256 + 255) / 256;
}

// Means, sparse by block: block b owns entries offsets[b] .. offsets[b+1]-1.
//
//   positions  u16 [E]  ascending within a block
//   values     i64 [E]  r, in units of 2^-44; never 0, at most kMaxScale in magnitude
struct DeltaMeans {
  std::vector<uint32_t> offsets = {0};
  std::vector<uint16_t> positions;
  std::vector<int64_t> values;

  int64_t blocks() const { return static_cast<int64_t>(offsets.size()) - 1; }
  // No blocks; the memory stays.
  void Clear() {
    offsets.resize(1);
    positions.clear();
    values.clear();
  }
  bool operator==(const DeltaMeans&) const = default;
};

// Rounds means (docs/algorithm.md, "Combining") by multiplication: a division takes as long as all
// else that is done for a position. Immutable.
class MeanRounding {
 public:
  // For divisors up to `most`; those above kMostReciprocals are divided by.
  explicit MeanRounding(int64_t most);

  // r = sgn(S) * floor((2 |S| + D) / (2 D)): the nearest mean, halves away from 0. Requires |S|
  // below 2^62 and 1 <= divisor <= `most`.
  int64_t Mean(int64_t sum, int64_t divisor) const;

 private:
  static constexpr int64_t kMostReciprocals = 4096;
  std::vector<uint64_t> reciprocals_;  // [D]: floor((2^64 - 1) / D); 0 has none
};

// A worker's block that is not empty; borrowed.
struct SparseSent {
  absl::Span<const uint16_t> entries;  // as those of SentGroup (update_reader.h)
  uint8_t code = 0;                    // of the scale
  int weight = 1;                      // n_w
  size_t payload = 0;                  // its number among those of the segment
};

// Sums one block at a time in 70 KB of scratch memory, of which it touches only what was sent. Not
// thread-safe.
class DeltaAccumulator {
 public:
  explicit DeltaAccumulator(const MeanRule& rule) : rule_(rule), rounding_(rule.weights) {}

  // Adds one worker's block. Positions outside the tensor are ignored. Requires positions below
  // 4096, as many values, of at most kMaxScale in magnitude, and that the weights of a block sum to
  // at most kMaxDeltaWeights.
  void Add(const BlockExtent& extent, absl::Span<const uint16_t> positions,
           absl::Span<const int64_t> values, int weight);
  void Add(const BlockExtent& extent, const SparseSent& sent);

  // Appends the block's means to `means`. The scratch is empty again afterwards.
  void EmitBlock(DeltaMeans* means);

 private:
  // The sum of a position and the weights of who sent it, C: together, so that adding touches one
  // line of the cache.
  struct Sum {
    int64_t value = 0;
    int64_t weight = 0;
  };
  void AddOne(uint32_t position, int64_t value, int weight) {
    Sum& sum = sums_[position];
    sum.value += value;
    sum.weight += weight;
    touched_[position / 64] |= uint64_t{1} << (position % 64);
  }

  // The floor limits what a single sender moves alone.
  int64_t DivisorOf(const Sum& sum) const {
    return rule_.divisor == Divisor::kAll ? rule_.weights
                                          : std::max(sum.weight, rule_.least_senders);
  }

  const MeanRule rule_;
  const MeanRounding rounding_;
  std::array<Sum, kBlockElements> sums_{};
  std::array<uint64_t, kBlockElements / 64> touched_{};
};

struct WeightedDelta {
  const DeltaUpdate* update = nullptr;  // borrowed; valid
  int weight = 1;                       // n_w
};

// The means of the updates included in a segment. Requires one block per extent in each update, and
// weights that sum to rule.weights, at most kMaxDeltaWeights.
DeltaMeans CombineDeltas(absl::Span<const WeightedDelta> updates,
                         absl::Span<const BlockExtent> extents, const MeanRule& rule);

// The `keep` largest |r| of every block, or all if there are fewer. Ties as KeepTop
// (signs/combine.h). Requires keep >= 1.
DeltaMeans KeepLargest(const DeltaMeans& means, int keep, uint64_t run_seed, RoundId round,
                       int64_t first_block);

// The result to send: the smallest code that covers the block's largest |r|, and each position's
// level. Drops positions of level kLevels.
DeltaResult RoundToLevels(const DeltaMeans& means);
// A block of it.
void RoundBlock(const DeltaMeans& means, int64_t block, DeltaBlock* result);

}  // namespace distro
