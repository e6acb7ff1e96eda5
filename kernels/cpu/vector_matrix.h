// Bodies of MatrixKernels for vectors of L floats. Included by the files that compile them for one
// instruction set, with multiply-adds contracted; see vector.h for the rule on allowed code.
#pragma once

#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro::vector {

// A tile of a product; b [depth, 2L] without gaps.
template <int L>
[[gnu::always_inline]] inline void ProductTile(const float* a, int64_t a_row, const float* b,
                                               int64_t depth, const ProductSum& sum,
                                               const float* addend, float* out, int64_t out_row) {
  Tile<L> sums = {};
  AddProducts<L>({.at = a, .row = a_row, .term = 1}, b, 2 * L, depth, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows<L>; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      F32<L> value = sum.product * sums[r][v];
      if (addend != nullptr) value += sum.addend * Load<L>(addend + r * out_row + v * L);
      Store<L>(value, out + r * out_row + v * L);
    }
  }
}

// 2L columns of the product. b is read from a copy of as many of its columns and 2048 / L of its
// rows, 16 KiB that stay in the first cache: in b itself, rows of a power of two elements share few
// sets.
template <int L>
inline void ProductColumns(const ProductShape& shape, int64_t col, const float* a, const float* b,
                           ProductSum sum, const float* addend, float* out) {
  constexpr int64_t kDepth = 2048 / L;
  const int64_t cols = shape.cols;
  const int64_t rows = shape.symmetric && col + 2 * L < shape.rows ? col + 2 * L : shape.rows;
  alignas(64) float copy[kDepth * 2 * L];
  for (int64_t first = 0; first < shape.depth; first += kDepth) {
    const int64_t depth = shape.depth - first < kDepth ? shape.depth - first : kDepth;
    for (int64_t k = 0; k < depth; ++k)
      __builtin_memcpy(copy + k * 2 * L, b + (first + k) * cols + col, 2 * L * sizeof(float));
    for (int64_t row = 0; row < rows; row += kTileRows<L>) {
      const int64_t at = row * cols + col;
      ProductTile<L>(a + row * shape.depth + first, shape.depth, copy, depth, sum,
                     addend == nullptr ? nullptr : addend + at, out + at, cols);
    }
    sum.addend = 1;  // to what is there
    addend = out;
  }
}

template <int L>
void Product(const ProductShape& shape, const float* a, const float* b, const ProductSum& sum,
             const float* addend, float* out) {
  for (int64_t col = 0; col < shape.cols; col += 2 * L)
    ProductColumns<L>(shape, col, a, b, sum, addend, out);
}

template <int L>
constexpr MatrixKernels MakeMatrixKernels() {
  return {.alignment = L == 16 ? 32 : 16, .product = Product<L>};
}

}  // namespace distro::vector
