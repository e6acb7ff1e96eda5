// The start of every exact operation (docs/algorithm.md, "Exactness"): checks and scales votes for
// the integer transform, and sets the default floating-point environment.
#pragma once

#include <cfenv>
#include <cstdint>
#include <optional>

#include "kernels/backend.h"
#include "kernels/block.h"

namespace distro {

// The votes of block `block` of the view, block 0 being the first.
// Nothing: sum |V| exceeds 32767, or positions are not ascending below 4096.
std::optional<BlockVotes> VotesOfBlock(const VotesView& votes, int64_t block);

// Aborts unless `votes` covers `blocks` blocks and its arrays are as long as its offsets say.
void CheckVotes(const VotesView& votes, int64_t blocks);

// The default floating-point environment for a scope: rounding to nearest, denormals kept, no
// traps. The exact operations open one, so that what the calling thread has set cannot reach a
// replica's bits; the caller's own environment comes back at the end.
//
// The compiler knows nothing of this environment: arithmetic inside the scope must sit behind a
// call into another source file, or it may be moved out.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment();
  ~DefaultFloatEnvironment();
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace distro
