// Locates blocks inside a tensor's element array, and checks a caller's shapes against it. Pure
// functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/model/layout/matrix.h"
#include "kernels/block.h"

namespace distro {

// The block that is `down`-th from above and `right`-th from the left, both inside the grid.
constexpr BlockSite SiteAt(const MatrixShape& matrix, int64_t down, int64_t right) {
  const int64_t row = down * kBlockSide;
  const int64_t col = right * kBlockSide;
  BlockSite site{};
  site.offset = row * matrix.cols + col;
  site.stride = matrix.cols;
  site.rows = static_cast<int>(std::min<int64_t>(kBlockSide, matrix.rows - row));
  site.cols = static_cast<int>(std::min<int64_t>(kBlockSide, matrix.cols - col));
  const int64_t left = matrix.elements - (site.offset + (site.rows - 1) * site.stride);
  site.last_cols = static_cast<int>(std::clamp<int64_t>(left, 0, site.cols));
  return site;
}

// Requires 0 <= block < matrix.Blocks().
constexpr BlockSite SiteOf(const MatrixShape& matrix, int64_t block) {
  return SiteAt(matrix, block / matrix.BlocksAcross(), block % matrix.BlocksAcross());
}

// The block's size inside the tensor.
constexpr BlockExtent ExtentOf(const BlockSite& site) {
  return {.rows = site.rows, .cols = site.cols, .last_cols = site.last_cols};
}

// Aborts with `what`: a shape that does not match is a bug of the caller.
void CheckShape(bool ok, const char* what);

// Aborts unless the range lies in the matrix and `elements` is the size of its array.
void CheckBlocks(const MatrixShape& matrix, BlockRange blocks, size_t elements);

// Aborts unless 1 <= k <= 4096 and both arrays hold `count` x `k`.
void CheckSparse(BlockRange blocks, int k, size_t positions, size_t values);

}  // namespace distro
