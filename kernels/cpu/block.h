// One block of a tensor and its votes. Plain data without member functions and with light includes: files compiled for one
// instruction set use it, and must not emit inline functions or initialisers that others could be linked to.
#pragma once

#include <cstdint>

namespace distro {

// The part of a block that exists: row r holds elements offset + r*stride .. + cols - 1, the last row only `last_cols`
// of them. Everything else of the 64 x 64 block is padding that nobody stores.
struct BlockSite {
  int64_t offset;
  int64_t stride;
  int rows;       // 1..64
  int cols;       // 1..64
  int last_cols;  // 0..cols
};

// The votes of one block, borrowed; `shift` is s of "V <- V * 2^s".
struct BlockVotes {
  const uint16_t* positions;
  const int16_t* values;
  int count;
  int shift;
};

}  // namespace distro
