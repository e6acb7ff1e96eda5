// The reference backend's operations on one block: the executable specification. Scalar loops,
// written to be obviously right; tests compare the fast kernels with them. Pure functions,
// thread-safe.
//
// Blocks are full size: f32 or i32 [64, 64], row-major, zero padding.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/backend.h"
#include "kernels/block_site.h"
#include "kernels/cpu/exact.h"

namespace distro::reference {

// m <- beta*m + eta*(g*gradient_scale) on the elements of the block; x <- the block of m.
void Momentum(const BlockSite& site, const SignCompressOptions& options,
              absl::Span<const float> gradient, absl::Span<float> momentum,
              float x[kBlockElements]);

// c[h][w] = sum over r, q of basis[h][r] * basis[w][q] * x[r][q], in f64, rounded to f32.
void ForwardTransform(const float x[kBlockElements], float c[kBlockElements]);

// The k positions of largest magnitude, ties to the lower one, ascending; a NaN counts as larger
// than any number.
void TopK(const float c[kBlockElements], int k, uint16_t* positions, float* values);

// x[r][q] = sum over the k entries of value * basis[h][r] * basis[w][q], in f64, rounded to f32.
void InverseTransform(int k, const uint16_t* positions, const float* values,
                      float x[kBlockElements]);

// u of docs/algorithm.md, "Exactness": scales V by 2^s, transforms the horizontal axis and rounds,
// then transforms the vertical axis.
void InverseInteger(const BlockVotes& votes, int32_t u[kBlockElements]);

// p <- (p - p*eta_lambda) - eta*sign(u) on the elements of the block, three rounded operations.
void Update(const BlockSite& site, const SignApplyOptions& options, const int32_t u[kBlockElements],
            absl::Span<float> parameters);

// p <- p - float(u)*step on the elements of the block, three rounded operations.
void Subtract(const BlockSite& site, float step, const int32_t u[kBlockElements],
              absl::Span<float> parameters);

// out <- p - eta*sign(m), two rounded operations.
void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
               absl::Span<float> out);

// The sum of Backend::StateHash.
uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters);

// Backend::RowSums.
void RowSums(const MatrixShape& matrix, absl::Span<const float> gradient, absl::Span<double> sums);

}  // namespace distro::reference
