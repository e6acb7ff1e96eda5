// The shape of a tensor as a matrix of 64 x 64 blocks (docs/algorithm.md, "Layout"), and of the
// part that a rank of a node may hold: whole rows of blocks. Plain values, pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace distro {

inline constexpr int kBlockSide = 64;
// S; positions are vertical * 64 + horizontal frequency.
inline constexpr int kBlockElements = kBlockSide * kBlockSide;

// The matrix of a tensor, row-major: [dim0, product of the rest], or [ceil(n/64), 64] of a 1-D
// tensor of n elements, whose last row may be shorter. Element (r, c) exists when r < rows, c <
// cols and r * cols + c < elements. Blocks are numbered row-major over the grid; edge blocks are
// padded with zeros, which are not stored.
struct MatrixShape {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t elements = 0;

  constexpr int64_t BlocksDown() const { return (rows + kBlockSide - 1) / kBlockSide; }
  constexpr int64_t BlocksAcross() const { return (cols + kBlockSide - 1) / kBlockSide; }
  constexpr int64_t Blocks() const { return BlocksDown() * BlocksAcross(); }
  constexpr bool operator==(const MatrixShape&) const = default;
};

// The part of a 64 x 64 block that lies inside its tensor: `rows` rows of `cols` elements, the last
// row only `last_cols` of them.
struct BlockExtent {
  int rows = kBlockSide;
  int cols = kBlockSide;
  int last_cols = kBlockSide;

  // Elements of a row. Requires 0 <= row < rows.
  constexpr int ColsOfRow(int row) const { return row + 1 == rows ? last_cols : cols; }
  constexpr int Elements() const { return (rows - 1) * cols + last_cols; }
  // Requires 0 <= position < kBlockElements.
  constexpr bool Contains(int position) const {
    const int row = position / kBlockSide, col = position % kBlockSide;
    return row < rows && col < ColsOfRow(row);
  }
  constexpr bool operator==(const BlockExtent&) const = default;
};

// Requires 0 <= block < matrix.Blocks().
constexpr BlockExtent ExtentOf(const MatrixShape& matrix, int64_t block) {
  const int64_t row = block / matrix.BlocksAcross() * kBlockSide;
  const int64_t col = block % matrix.BlocksAcross() * kBlockSide;
  const int64_t rows = std::min<int64_t>(kBlockSide, matrix.rows - row);
  const int64_t cols = std::min<int64_t>(kBlockSide, matrix.cols - col);
  const int64_t left = matrix.elements - ((row + rows - 1) * matrix.cols + col);
  return {.rows = static_cast<int>(rows),
          .cols = static_cast<int>(cols),
          .last_cols = static_cast<int>(std::min(left, cols))};
}

// Whole rows of blocks of one tensor. A matrix is row-major, so their elements are consecutive, and
// they are themselves a matrix of fewer rows (docs/fsdp.md, "Shards").
struct TensorRows {
  int tensor = 0;         // index into the manifest
  int64_t first_row = 0;  // of blocks
  int64_t rows = 0;       // of blocks

  constexpr bool operator==(const TensorRows&) const = default;
};

// The matrix formed by the rows. Requires rows inside the tensor.
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
