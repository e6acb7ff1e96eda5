// The start of every exact operation (docs/algorithm.md, "Exactness"): checks and scales votes for
// the integer transform, and sets the default floating-point environment.
#pragma once

#include <cfenv>
#include <cstdint>
#include <optional>

#include "kernels/backend.h"
#include "kernels/block.h"

namespace distro {

// The votes of block `block` of the view, counted from 0; nullopt if sum |V| exceeds 32767, or
// positions are not ascending and below 4096.
std::optional<BlockVotes> VotesOfBlock(const VotesView& votes, int64_t block);

// Aborts unless `votes` covers `blocks` blocks and its arrays are as long as its offsets say.
void CheckVotes(const VotesView& votes, int64_t blocks);

// Sets the default floating-point environment for a scope: rounding to nearest, denormals kept, no
// traps. The destructor restores the caller's. The exact operations use it, so that settings of the
// calling thread cannot change a replica's bits.
//
// The compiler does not know about the environment and may move arithmetic out of the scope.
// Therefore arithmetic inside the scope must be in a function of another source file.
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
