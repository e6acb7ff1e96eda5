// The votes of one block, checked and scaled as the integer transform wants them (docs/algorithm.md, "Exactness").
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/cpu/block.h"

namespace distro {

// The votes of block `block` of the view, block 0 being the first.
// DataLoss: sum |V| exceeds 32767, or positions are not ascending below 4096.
absl::StatusOr<BlockVotes> VotesOfBlock(const VotesView& votes, int64_t block);

// Aborts unless `votes` covers `blocks` blocks and its arrays are as long as its offsets say.
void CheckVotes(const VotesView& votes, int64_t blocks);

}  // namespace distro
