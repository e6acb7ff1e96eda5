// Bodies of MatrixKernels for vectors of L floats. Included by the files that compile them for one
// instruction set, with multiply-adds contracted; see vector.h for the rule on allowed code.
#pragma once

#include "kernels/cpu/vector.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro::vector {

// kRows x 2L elements of a product; the accumulators stay in registers.
template <int L, int kRows>
[[gnu::always_inline]] inline void ProductTile(const float* a, int64_t a_row, const float* b,
                                               int64_t b_row, int64_t depth, const ProductSum& sum,
                                               const float* addend, float* out, int64_t out_row) {
  F32<L> sums[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const F32<L> left = Load<L>(b + k * b_row), right = Load<L>(b + k * b_row + L);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float factor = a[r * a_row + k];
      sums[r][0] += factor * left;
      sums[r][1] += factor * right;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      F32<L> value = sum.product * sums[r][v];
      if (addend != nullptr) value += sum.addend * Load<L>(addend + r * out_row + v * L);
      Store<L>(value, out + r * out_row + v * L);
    }
  }
}

template <int L>
void Product(const ProductShape& shape, const float* a, const float* b, const ProductSum& sum,
             const float* addend, float* out) {
  constexpr int kRows = L == 16 ? 8 : 4;
  for (int64_t col = 0; col < shape.cols; col += 2 * L) {
    for (int64_t row = 0; row < shape.rows; row += kRows) {
      if (shape.symmetric && row >= col + 2 * L) break;
      const int64_t at = row * shape.cols + col;
      ProductTile<L, kRows>(a + row * shape.depth, shape.depth, b + col, shape.cols, shape.depth,
                            sum, addend == nullptr ? nullptr : addend + at, out + at, shape.cols);
    }
  }
}

template <int L>
constexpr MatrixKernels MakeMatrixKernels() {
  return {.alignment = L == 16 ? 32 : 16, .product = Product<L>};
}

}  // namespace distro::vector
