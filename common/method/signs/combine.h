// Combines updates (docs/algorithm.md, "Combining"): V[b][i] = sum over workers of weight * sign,
// in integers, block by block; and selects the votes that are downloaded. Pure; the order of the
// workers does not matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/matrix.h"

namespace distro {

// Sums one block at a time in 8.5 KB of scratch memory, which stays in the L1 cache: i16 [4096], a
// bitmap of touched positions, and a bitmap of that bitmap's touched words, since most blocks touch
// few. Not thread-safe.
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
  // One more element, because TakePositions writes one beyond the last.
  using TouchedPositions = std::array<uint16_t, kBlockElements + 1>;
  // Writes the touched positions, ascending, and returns their number. Afterwards none is touched.
  size_t TakePositions(TouchedPositions* positions);

  std::array<int16_t, kBlockElements> sums_{};
  std::array<uint64_t, kBlockElements / 64> touched_{};
  uint64_t touched_words_ = 0;
};

// For download = "top": keeps the `keep` largest |V| of every block (or all, if there are fewer),
// at ascending positions. Among equal values the smaller Mix(run_seed + G * (round * 2^38 + block *
// 2^12 + position + 1)) is kept, so that no position is favoured. `first_block` is the number of
// the first block of `votes` among all blocks of the run. Requires keep >= 0.
Votes KeepTop(const Votes& votes, int keep, uint64_t run_seed, RoundId round, int64_t first_block);

}  // namespace distro
