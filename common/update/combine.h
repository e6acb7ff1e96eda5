// Combining, a block at a time: V[b][i] = sum over workers of weight * sign, in integers
// (docs/algorithm.md, "Combining"). Pure; the order of the workers never matters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "common/update/votes.h"

namespace distro {

// Sums one block at a time in a dense scratch of 8.5 KB (i16 [4096], a bitmap of touched positions,
// and one of its touched words, for most blocks touch few), which stays in the first-level cache.
// Not thread-safe.
class VoteAccumulator {
 public:
  // Adds one worker's block. Requires positions below 4096, as many signs as positions, and that
  // the sum of |weight * sign| of the block stays at or below kMaxVotesPerBlock.
  void Add(absl::Span<const uint16_t> positions, absl::Span<const int8_t> signs, int weight) {
    for (size_t i = 0; i < positions.size(); ++i) {
      const uint32_t position = positions[i];
      sums_[position] = static_cast<int16_t>(sums_[position] + weight * signs[i]);
      touched_[position / 64] |= uint64_t{1} << (position % 64);
      touched_words_ |= uint64_t{1} << (position / 64);
    }
  }

  // Appends the block to `votes`: its non-zero sums in ascending position. The scratch is empty
  // again afterwards.
  void EmitBlock(Votes* votes);

 private:
  using TouchedPositions = std::array<uint16_t, kBlockElements + 1>;  // one is written beyond the last
  // The touched positions, ascending, and how many there are; none is touched afterwards.
  size_t TakePositions(TouchedPositions* positions);

  std::array<int16_t, kBlockElements> sums_{};
  std::array<uint64_t, kBlockElements / 64> touched_{};
  uint64_t touched_words_ = 0;
};

}  // namespace distro
