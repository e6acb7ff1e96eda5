// How a tensor is seen as a matrix of 64 x 64 blocks (docs/algorithm.md, "Layout"). Plain values, pure functions.
#pragma once

#include <cstdint>

namespace distro {

inline constexpr int kBlockSide = 64;
inline constexpr int kBlockElements =
    kBlockSide * kBlockSide;  // S, positions are vertical * 64 + horizontal frequency

// The matrix of a tensor, row-major: [dim0, product of the rest], or [ceil(n/64), 64] of a 1-D tensor of n elements,
// whose last row may be cut short. Element (r, c) exists when r < rows, c < cols and r * cols + c < elements.
// Blocks are numbered row-major over the grid; edge blocks are padded with zeros that nobody stores.
struct MatrixShape {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t elements = 0;

  constexpr int64_t BlocksDown() const { return (rows + kBlockSide - 1) / kBlockSide; }
  constexpr int64_t BlocksAcross() const { return (cols + kBlockSide - 1) / kBlockSide; }
  constexpr int64_t Blocks() const { return BlocksDown() * BlocksAcross(); }
  constexpr bool operator==(const MatrixShape&) const = default;
};

}  // namespace distro
