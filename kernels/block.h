// The operands of kernels: blocks of a tensor, their votes, the numbers of a round. Plain data
// without member functions and with light includes: files compiled for one instruction set use it,
// and must not emit inline functions or initialisers that others could be linked to.
#pragma once

#include <cstdint>

namespace distro {

// Blocks of a tensor, or of rows of one.
struct BlockRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Momentum and step of one round.
struct CompressOptions {
  float beta = 0;
  float eta = 0;             // learning rate
  float gradient_scale = 1;  // min(1, clip / ||g||)
  int k = 0;                 // 1..4096
};

struct UpdateOptions {
  float eta = 0;
  float eta_lambda = 0;  // +0 for tensors that do not decay
};

// What a result of deltas does to a tensor (docs/algorithm.md, "Every replica").
struct DeltaOptions {
  float alpha = 1;      // outer rate: 0, or at least 2^-82
  bool as_dct = false;  // its blocks travel as their DCT
};

// The part of a block that exists: row r holds elements offset + r*stride .. + cols - 1, the last
// row only `last_cols` of them. Everything else of the 64 x 64 block is padding that nobody stores.
struct BlockSite {
  int64_t offset;
  int64_t stride;
  int rows;       // 1..64
  int cols;       // 1..64
  int last_cols;  // 0..cols
};

// The entries of one block of a result of deltas, borrowed.
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
