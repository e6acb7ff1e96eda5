// The combined result of one range of blocks: integer votes, sparse by block (compressed rows).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace distro {

// The largest sum of |V| over a block: admission keeps K * (sum of weights) at or below it
// (docs/algorithm.md).
inline constexpr int kMaxVotesPerBlock = 32767;

// Plain data. Block b owns entries offsets[b] .. offsets[b+1]-1.
//
//   offsets    u32 [B + 1]  starts at 0, ascending
//   positions  u16 [E]      ascending and distinct within a block, below 4096
//   values     i16 [E]      never 0; sum of |values| of a block at most kMaxVotesPerBlock
struct Votes {
  std::vector<uint32_t> offsets = {0};
  std::vector<uint16_t> positions;
  std::vector<int16_t> values;

  int64_t blocks() const { return static_cast<int64_t>(offsets.size()) - 1; }
  bool operator==(const Votes&) const = default;
};

// The blocks of the first part, then those of the second, ... Requires less than 2^32 votes in all.
Votes Concatenate(std::vector<Votes> parts);

// Checks that `votes` follows the rules above and has `blocks` blocks. InvalidArgument names the
// first invalid block.
absl::Status ValidateVotes(const Votes& votes, int64_t blocks);

}  // namespace distro
