// The operations of the optimizer on one device, and their contracts (docs/algorithm.md). Momentum and the forward transform
// are local to a worker: ordinary float arithmetic, results may differ between backends in the last bits. Apply and
// StateHash are exact: every backend gives the same bits on every input.
//
// Element arrays (gradient, momentum, parameters) are a tensor's whole f32 [elements] array, row-major without padding;
// `blocks` says which of its blocks an operation touches. Block b of the range is block blocks.first + b of the tensor.
// Sparse arrays (positions, values, votes) cover exactly the range. All spans are borrowed for the call.
//
// A Backend has no state but scratch: one caller at a time per object; make one a thread. Nothing is checked about the
// contents of floats; shapes that do not match are our own bugs (CHECK), never input.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "kernels/block.h"

namespace distro {

// Votes of a range of blocks, borrowed; shapes as in common/update/votes.h. `offsets` need not start at 0: entries of
// block b are offsets[b] - offsets[0] .. offsets[b+1] - offsets[0] - 1 of the two other arrays.
struct VotesView {
  absl::Span<const uint32_t> offsets;    // [count + 1]
  absl::Span<const uint16_t> positions;  // [E]
  absl::Span<const int16_t> values;      // [E]
};

class Backend {
 public:
  virtual ~Backend() = default;

  // m <- beta*m + eta*(g*gradient_scale); c <- DCT2(m); keeps the k largest |c| of every block.
  //
  //   gradient   f32 [elements]  in
  //   momentum   f32 [elements]  in, out; only elements of the range change
  //   positions  u16 [count, k]  out  ascending within a block
  //   values     f32 [count, k]  out  c at those positions
  //
  // Ties of |c| go to the lower position. A block of zeros gives positions 0..k-1 and values 0.
  virtual void Compress(const MatrixShape& matrix, BlockRange blocks,
                        const CompressOptions& options, absl::Span<const float> gradient,
                        absl::Span<float> momentum, absl::Span<uint16_t> positions,
                        absl::Span<float> values) = 0;

  // Error feedback: m <- m - IDCT2(pending), inside the tensor.
  //
  //   positions, values  [count, k]  in   what Compress gave
  //   momentum           f32 [elements]  in, out
  virtual void Feedback(const MatrixShape& matrix, BlockRange blocks, int k,
                        absl::Span<const uint16_t> positions, absl::Span<const float> values,
                        absl::Span<float> momentum) = 0;

  // d <- sign(IDCTint(votes)); p <- (p - p*eta_lambda) - eta*d, three rounded operations, independent of the caller's
  // floating-point environment. Elements of blocks without votes take d = +0.
  //
  //   parameters  f32 [elements]  in, out; only elements of the range change
  //
  // DataLoss: the sum of |V| of a block exceeds 32767; parameters of the range are then unspecified, so the caller
  // validates votes first (DecodeVotes does).
  virtual absl::Status Apply(const MatrixShape& matrix, BlockRange blocks,
                             const UpdateOptions& options, const VotesView& votes,
                             absl::Span<float> parameters) = 0;

  // out <- p - eta * sign(m), elementwise, sign(0) = +0; two rounded operations (docs/algorithm.md, overlap = 1).
  virtual void Lookahead(float eta, absl::Span<const float> parameters,
                         absl::Span<const float> momentum, absl::Span<float> out) = 0;

  // sum over i of mix(2^32 * (first_index + i) + bits(p[i]) + G) modulo 2^64: a tensor's state hash is the sum over its
  // pieces, in any order.
  virtual uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) = 0;

  // Sum of squares in f64: squares added in element order within each row of blocks (64 rows of the matrix), then the
  // block rows' sums in order. The sums of tensors are added in manifest order by the caller. A GPU adds in an order of its own
  // (kernels/cuda/cuda_backend.h).
  virtual double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) = 0;

  // What SumOfSquares adds up: the sum of each row of blocks by itself, so that ranks which hold some of them get the same
  // bits together. This one asks SumOfSquares row by row; a backend may do better.
  //
  //   sums  f64 [matrix.BlocksDown()]  out
  virtual void RowSumsOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient,
                                absl::Span<double> sums);

  // The operations above that give something back, for a device that works through what it is given (kernels/device.h): what they
  // write is in the device's memory and there once the device has finished. Compress, Feedback and Lookahead are enqueued too. On a
  // CPU, where these functions call the ones above, all are done when they return.

  // Apply. *invalid, which the caller has set to all ones, is another value afterwards when a block's votes break the rules.
  virtual void EnqueueApply(const MatrixShape& matrix, BlockRange blocks,
                            const UpdateOptions& options, const VotesView& votes,
                            absl::Span<float> parameters, uint32_t* invalid);
  // Adds StateHash to *sum, modulo 2^64.
  virtual void EnqueueStateHash(uint64_t first_index, absl::Span<const float> parameters,
                                uint64_t* sum);
  // RowSumsOfSquares. `workspace` has RowSumsWorkspace(matrix) elements.
  virtual int64_t RowSumsWorkspace(const MatrixShape& matrix) const;
  virtual void EnqueueRowSums(const MatrixShape& matrix, absl::Span<const float> gradient,
                              double* workspace, absl::Span<double> sums);
};

}  // namespace distro
