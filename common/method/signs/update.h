// A worker's update of one range of blocks: K signed positions per block (docs/algorithm.md, "A
// worker's step").
#pragma once

#include <cstdint>
#include <vector>

namespace distro {

// Plain data. Block b owns entries b*K .. b*K + K-1 of both arrays.
//
//   positions  u16 [B, K]  ascending and distinct within a block, below 4096
//   signs      i8  [B, K]  +1 or -1; all 0 in a block that casts no vote (its positions are 0 then)
struct SignUpdate {
  int k = 0;
  std::vector<uint16_t> positions;
  std::vector<int8_t> signs;

  int64_t blocks() const { return k == 0 ? 0 : static_cast<int64_t>(signs.size()) / k; }
  bool operator==(const SignUpdate&) const = default;
};

}  // namespace distro
