// How a tensor is seen as a matrix of 64 x 64 blocks (docs/algorithm.md, "Layout"), and what a rank
// of a node may hold of it: whole rows of blocks. Plain values, pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace distro {

inline constexpr int kBlockSide = 64;
// S; positions are vertical * 64 + horizontal frequency.
inline constexpr int kBlockElements = kBlockSide * kBlockSide;

// The matrix of a tensor, row-major: [dim0, product of the rest], or [ceil(n/64), 64] of a 1-D
// tensor of n elements, whose last row may be cut short. Element (r, c) exists when r < rows, c <
// cols and r * cols + c < elements. Blocks are numbered row-major over the grid; edge blocks are
// padded with zeros that nobody stores.
struct MatrixShape {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t elements = 0;

  constexpr int64_t BlocksDown() const { return (rows + kBlockSide - 1) / kBlockSide; }
  constexpr int64_t BlocksAcross() const { return (cols + kBlockSide - 1) / kBlockSide; }
  constexpr int64_t Blocks() const { return BlocksDown() * BlocksAcross(); }
  constexpr bool operator==(const MatrixShape&) const = default;
};

// Whole rows of blocks of one tensor. A matrix is row-major, so their elements are consecutive, and
// they are themselves a matrix of fewer rows (docs/fsdp.md, "Shards").
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

}  // namespace distro
