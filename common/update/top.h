// download = top: a result cut down to the strongest votes of each block (docs/algorithm.md,
// "Combining"). Pure.
#pragma once

#include <cstdint>

#include "common/base/ids.h"
#include "common/update/votes.h"

namespace distro {

// The `keep` largest |V| of every block, at ascending positions; all of a block that has no more.
// Among equals the smaller Mix(run_seed + G * (round * 2^38 + block * 2^12 + position + 1)) stays,
// so that no position is favoured. `first_block` is the number of the first block of `votes` among
// all blocks of the run. Requires keep >= 0.
Votes KeepTop(const Votes& votes, int keep, uint64_t run_seed, RoundId round, int64_t first_block);

}  // namespace distro
