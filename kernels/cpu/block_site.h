// Where a block lies inside a tensor's element array. Plain data, pure functions.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace distro {

// The part of a block that exists: row r holds elements offset + r*stride .. + cols - 1, the last row only `last_cols`
// of them. Everything else of the 64 x 64 block is padding that nobody stores. No member functions: files compiled for
// one instruction set use it too, and must not emit inline functions that others could be linked to.
struct BlockSite {
  int64_t offset;
  int64_t stride;
  int rows;       // 1..64
  int cols;       // 1..64
  int last_cols;  // 0..cols
};

// Requires 0 <= block < matrix.Blocks().
BlockSite SiteOf(const MatrixShape& matrix, int64_t block);

// Aborts with `what`: a shape that does not match is a bug of the caller.
void CheckShape(bool ok, const char* what);

// Aborts unless the range lies in the matrix and `elements` is the size of its array.
void CheckBlocks(const MatrixShape& matrix, BlockRange blocks, size_t elements);

// Aborts unless 1 <= k <= 4096 and both arrays hold `count` x `k`.
void CheckSparse(BlockRange blocks, int k, size_t positions, size_t values);

}  // namespace distro
