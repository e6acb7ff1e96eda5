// Operands of the kernels: blocks of a tensor, their votes, the scalars of a round. Plain data
// without member functions and with few includes, because files compiled for one instruction set
// include it: they must not emit inline functions or initialisers that the linker could give to
// other files.
#pragma once

#include <cstdint>

namespace distro {

// Blocks of a tensor, or of rows of one.
struct BlockRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Momentum and step of one round.
struct SignCompressOptions {
  float beta = 0;
  float eta = 0;             // learning rate
  float gradient_scale = 1;  // min(1, clip / ||g||)
  int k = 0;                 // 1..4096
};

struct SignApplyOptions {
  float eta = 0;
  float eta_lambda = 0;  // +0 for tensors that do not decay
};

// How a deltas result is applied to a tensor (docs/algorithm.md, "Every replica").
struct DeltaApplyOptions {
  float alpha = 1;      // outer rate: 0, or at least 2^-82
  bool as_dct = false;  // blocks are sent as DCT frequencies, not as elements
};

// The part of a block that lies inside the tensor: row r holds the elements offset + r*stride .. +
// cols - 1, the last row only `last_cols` of them. The rest of the 64 x 64 block is padding, which
// is not stored.
struct BlockSite {
  int64_t offset;
  int64_t stride;
  int rows;       // 1..64
  int cols;       // 1..64
  int last_cols;  // 0..cols

  // Elements of a row. Requires 0 <= row < rows. Not in code that is compiled for several
  // instruction sets, of whose copies the linker keeps one.
  constexpr int ColsOfRow(int row) const { return row + 1 == rows ? last_cols : cols; }
};

// The entries of one block of a deltas result, borrowed.
struct BlockDeltas {
  const uint16_t* positions;
  const int8_t* signs;
  const uint8_t* levels;
  int count;
  uint8_t code;
};

// The votes of one block, borrowed; `shift` is s of "V <- V * 2^s".
struct BlockVotes {
  const uint16_t* positions;
  const int16_t* values;
  int count;
  int shift;
};

}  // namespace distro
