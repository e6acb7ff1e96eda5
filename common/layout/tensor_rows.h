// Whole rows of blocks of one tensor: what a rank of a node may hold of it. A matrix is row-major, so their elements are
// consecutive, and they are themselves a matrix of fewer rows (docs/fsdp.md, "Shards"). Plain values, pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/layout/layout.h"
#include "common/layout/matrix.h"

namespace distro {

struct TensorRows {
  int tensor = 0;         // index into the manifest
  int64_t first_row = 0;  // of blocks
  int64_t rows = 0;       // of blocks

  constexpr bool operator==(const TensorRows&) const = default;
};

// The matrix that the rows are. Requires them to lie in the tensor.
constexpr MatrixShape MatrixOfRows(const MatrixShape& tensor, int64_t first_row, int64_t rows) {
  const int64_t top = first_row * kBlockSide;
  const int64_t height = std::min(rows * kBlockSide, tensor.rows - top);
  return {.rows = height,
          .cols = tensor.cols,
          .elements = std::min(height * tensor.cols, tensor.elements - top * tensor.cols)};
}

// Index of their first element in the tensor, and of their first block.
constexpr int64_t FirstElement(const MatrixShape& tensor, int64_t first_row) {
  return first_row * kBlockSide * tensor.cols;
}
constexpr int64_t FirstBlock(const MatrixShape& tensor, int64_t first_row) {
  return first_row * tensor.BlocksAcross();
}

// Every tensor whole, in manifest order.
inline std::vector<TensorRows> AllRows(const Layout& layout) {
  std::vector<TensorRows> rows;
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    rows.push_back({.tensor = static_cast<int>(i),
                    .first_row = 0,
                    .rows = layout.tensors()[i].matrix.BlocksDown()});
  }
  return rows;
}

}  // namespace distro
