#include "kernels/cpu/block_site.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace distro {

BlockSite SiteOf(const MatrixShape& matrix, int64_t block) {
  const int64_t row = block / matrix.BlocksAcross() * kBlockSide;
  const int64_t col = block % matrix.BlocksAcross() * kBlockSide;
  BlockSite site;
  site.offset = row * matrix.cols + col;
  site.stride = matrix.cols;
  site.rows = static_cast<int>(std::min<int64_t>(kBlockSide, matrix.rows - row));
  site.cols = static_cast<int>(std::min<int64_t>(kBlockSide, matrix.cols - col));
  const int64_t left = matrix.elements - (site.offset + (site.rows - 1) * site.stride);
  site.last_cols = static_cast<int>(std::clamp<int64_t>(left, 0, site.cols));
  return site;
}

void CheckShape(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "kernels: %s\n", what);
  std::abort();
}

void CheckBlocks(const MatrixShape& matrix, BlockRange blocks, size_t elements) {
  CheckShape(static_cast<int64_t>(elements) == matrix.elements,
             "the array is not the matrix's size");
  CheckShape(
      blocks.first >= 0 && blocks.count >= 0 && blocks.first + blocks.count <= matrix.Blocks(),
      "the block range is outside the matrix");
}

void CheckSparse(BlockRange blocks, int k, size_t positions, size_t values) {
  CheckShape(k >= 1 && k <= kBlockElements, "k is outside 1..4096");
  const size_t entries = static_cast<size_t>(blocks.count) * static_cast<size_t>(k);
  CheckShape(positions == entries && values == entries, "positions or values are not [count, k]");
}

}  // namespace distro
