#include "kernels/block_site.h"

#include <cstdio>
#include <cstdlib>

namespace distro {

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
