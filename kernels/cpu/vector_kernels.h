// The vectorised kernels of one block as tables of functions, one table per vector width. All
// widths share one source (vector_transform.h, vector_exact.h), compiled once per instruction set.
// Pure functions, thread-safe.
//
// Blocks are f32 or i32 [64, 64], 64-byte aligned.
#pragma once

#include <cstdint>

#include "kernels/block.h"

namespace distro {

// Local operations: results differ between widths in the last bits.
struct TransformKernels {
  // reference::Momentum; x is the block, padding zero.
  void (*momentum)(const BlockSite& site, const SignCompressOptions& options, const float* gradient,
                   float* momentum, float* x);
  // x <- DCT2(x); scratch: f32 [64, 64].
  void (*forward)(float* x, float* scratch);
  // greatest[w]: bits of the largest |coefficient| in column w of the first `rows` rows.
  void (*column_maxima)(const float* coefficients, int rows, uint32_t greatest[64]);
  // Bit w of columns[h] is set when the bits of |coefficient| in row h, column w are at least
  // `threshold`.
  void (*columns_reaching)(const float* coefficients, uint32_t threshold, uint64_t columns[64]);
  // momentum <- momentum - IDCT2(entries); scratch: f32 [2, 64, 64].
  void (*subtract_inverse)(const BlockSite& site, int k, const uint16_t* positions,
                           const float* values, float* scratch, float* x, float* momentum);
};

// The same bits at every width, in the default floating-point environment.
struct ExactKernels {
  // reference::InverseInteger. scratch: i32 [2, 64, 64].
  void (*inverse_integer)(const BlockVotes& votes, int32_t* scratch, int32_t* u);
  // reference::Update, Subtract, Lookahead, StateHash.
  void (*update)(const BlockSite& site, const SignApplyOptions& options, const int32_t* u,
                 float* parameters);
  void (*subtract)(const BlockSite& site, float step, const int32_t* u, float* parameters);
  void (*lookahead)(float eta, const float* parameters, const float* momentum, float* out,
                    int64_t elements);
  uint64_t (*state_hash)(uint64_t first_index, const float* parameters, int64_t elements);
};

// A matrix product: a [rows, depth] * b [depth, cols], row-major without gaps. `symmetric`: rows =
// cols, and elements below the diagonal are not needed.
struct ProductShape {
  int64_t rows;
  int64_t cols;
  int64_t depth;
  bool symmetric;
};
struct ProductSum {
  float product;
  float addend;
};

// Local operations, for the inner optimizers.
struct MatrixKernels {
  int64_t alignment;  // rows and cols are multiples of it
  // out <- sum.product * a * b + sum.addend * addend, where `addend` may be nullptr. `out` does not
  // overlap an input.
  void (*product)(const ProductShape& shape, const float* a, const float* b, const ProductSum& sum,
                  const float* addend, float* out);
};

struct VectorKernels {
  const char* name;
  const TransformKernels* transform;
  const ExactKernels* exact;
  const MatrixKernels* matrix;
};

// 128 bits: the compiler's baseline, on any architecture. 256: AVX2 and FMA. 512: AVX-512 F, BW,
// DQ, VL.
extern const TransformKernels kTransform128, kTransform256, kTransform512;
extern const ExactKernels kExact128, kExact256, kExact512;
extern const MatrixKernels kMatrix128, kMatrix256, kMatrix512;

}  // namespace distro
