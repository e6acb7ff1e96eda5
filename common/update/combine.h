// Combining (docs/algorithm.md, "Combining"): V[b][i] = sum over workers of weight * sign, in
// integers, a block at a time, and what of a result is downloaded. Pure; the order of the workers
// never matters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/ids.h"
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
  // One is written beyond the last.
  using TouchedPositions = std::array<uint16_t, kBlockElements + 1>;
  // The touched positions, ascending, and how many there are; none is touched afterwards.
  size_t TakePositions(TouchedPositions* positions);

  std::array<int16_t, kBlockElements> sums_{};
  std::array<uint64_t, kBlockElements / 64> touched_{};
  uint64_t touched_words_ = 0;
};

// download = top: the `keep` largest |V| of every block, at ascending positions; all of a block
// that has no more. Among equals the smaller Mix(run_seed + G * (round * 2^38 + block * 2^12 +
// position + 1)) stays, so that no position is favoured. `first_block` is the number of the first
// block of `votes` among all blocks of the run. Requires keep >= 0.
Votes KeepTop(const Votes& votes, int keep, uint64_t run_seed, RoundId round, int64_t first_block);

}  // namespace distro
