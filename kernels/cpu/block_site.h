// Where blocks lie inside a tensor's element array, and whether a caller's shapes fit it. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/layout/matrix.h"
#include "kernels/cpu/block.h"
#include "kernels/options.h"

namespace distro {

// Requires 0 <= block < matrix.Blocks().
BlockSite SiteOf(const MatrixShape& matrix, int64_t block);

// Aborts with `what`: a shape that does not match is a bug of the caller.
void CheckShape(bool ok, const char* what);

// Aborts unless the range lies in the matrix and `elements` is the size of its array.
void CheckBlocks(const MatrixShape& matrix, BlockRange blocks, size_t elements);

// Aborts unless 1 <= k <= 4096 and both arrays hold `count` x `k`.
void CheckSparse(BlockRange blocks, int k, size_t positions, size_t values);

}  // namespace distro
