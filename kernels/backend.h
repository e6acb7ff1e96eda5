// The operations of the optimizer on one device, and their contracts (docs/algorithm.md). Momentum
// and the forward transform are local to a worker: ordinary float arithmetic, results may differ
// between backends in the last bits. ApplyVotes, ApplyDeltas, Lookahead and StateHash are exact:
// every backend gives the same bits on every input.
//
// Every operation is enqueued on the backend's device (kernels/device.h) and runs in the order of
// the calls. Its arrays and output words are in the device's memory; the caller keeps them alive
// until Finish. On a CPU, device memory is host memory, and a call returns when the work is done.
//
//   device->Fill(sum, 0, sizeof(uint64_t));
//   backend->StateHash(0, parameters, sum);
//   device->CopyOut(sum, sizeof(uint64_t), &hash);
//   DISTRO_RETURN_IF_ERROR(device->Finish());  // waits; returns the device's errors
//
// Element arrays (gradient, momentum, parameters) are a tensor's whole f32 [elements] array,
// row-major without padding; `blocks` says which of its blocks an operation touches. Block b of the
// range is block blocks.first + b of the tensor. Sparse arrays (positions, values, votes) cover
// exactly the range.
//
// A Backend holds only scratch memory. It is not thread-safe: make one per thread. Float contents
// are not checked. A shape that does not match is a bug of the caller (CHECK).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/model/layout/matrix.h"
#include "kernels/block.h"

namespace distro {

// Votes of a range of blocks, borrowed; shapes as in common/method/signs/votes.h. `offsets` need
// not start at 0: the entries of block b have the indices offsets[b] - offsets[0] .. offsets[b+1] -
// offsets[0] - 1 in the two other arrays.
struct VotesView {
  absl::Span<const uint32_t> offsets;    // [count + 1]
  absl::Span<const uint16_t> positions;  // [E]
  absl::Span<const int16_t> values;      // [E]
};

// The deltas method's result for a range of blocks, borrowed; shapes as in
// common/method/deltas/update.h, offsets as above.
struct DeltasView {
  absl::Span<const uint32_t> offsets;    // [count + 1]
  absl::Span<const uint16_t> positions;  // [E]
  absl::Span<const int8_t> signs;        // [E]
  absl::Span<const uint8_t> levels;      // [E]
  absl::Span<const uint8_t> codes;       // [count]
};

// Blocks of one tensor to compress, borrowed.
struct TensorMomentum {
  MatrixShape matrix;
  BlockRange blocks;
  absl::Span<const float> gradient;  // f32 [elements]  in
  absl::Span<float> momentum;        // f32 [elements]  in, out; only elements of the range change
  absl::Span<uint16_t> positions;    // u16 [count, k]  out  ascending within a block
  absl::Span<float> values;          // f32 [count, k]  out  c at those positions
};

// Aborts unless the arrays have these sizes and 1 <= k <= 4096.
void CheckMomentum(int k, const TensorMomentum& tensor);

// Value of `invalid` when ApplyVotes and ApplyDeltas found every block valid.
inline constexpr uint32_t kAllBlocksValid = ~uint32_t{0};

class Backend {
 public:
  virtual ~Backend() = default;

  // m <- beta*m + eta*(g*gradient_scale); c <- DCT2(m); keeps the k largest |c| of every block. All
  // tensors in one call, because a GPU is faster with them together.
  //
  // Ties of |c| go to the lower position. A block of zeros gives positions 0..k-1 and values 0.
  virtual void CompressSigns(const SignCompressOptions& options,
                             absl::Span<const TensorMomentum> tensors) = 0;

  // Error feedback: m <- m - IDCT2(pending), inside the tensor.
  //
  //   positions, values  [count, k]  in   as returned by CompressSigns
  //   momentum           f32 [elements]  in, out
  virtual void FeedbackSigns(const MatrixShape& matrix, BlockRange blocks, int k,
                             absl::Span<const uint16_t> positions, absl::Span<const float> values,
                             absl::Span<float> momentum) = 0;

  // d <- sign(IDCTint(votes)); p <- (p - p*eta_lambda) - eta*d, three rounded operations,
  // independent of the caller's floating-point environment. In blocks without votes, d = +0.
  //
  //   parameters  f32 [elements]  in, out; only elements of the range change
  //   invalid     u32             in, out; kAllBlocksValid, or the number of a block whose votes
  //               break the rules
  //
  // Rules: positions are ascending and below 4096, the sum of |V| is at most 32767. DecodeVotes
  // enforces them. The parameters of a block that breaks them do not change.
  virtual void ApplyVotes(const MatrixShape& matrix, BlockRange blocks,
                          const SignApplyOptions& options, const VotesView& votes,
                          absl::Span<float> parameters, uint32_t* invalid) = 0;

  // The deltas method's update. In tensors sent as elements: p <- p - step for every entry, two
  // rounded operations. In tensors sent as DCT: p <- p - float(IDCTint(V)) * w for every element of
  // a block that has entries, three rounded operations. Independent of the caller's floating-point
  // environment. Arrays as in ApplyVotes.
  //
  // Rules: positions are ascending and below 4096, and inside the tensor if they are elements;
  // signs are + or -; levels are below kLevels. The parameters of a block that breaks them do not
  // change.
  virtual void ApplyDeltas(const MatrixShape& matrix, BlockRange blocks,
                           const DeltaApplyOptions& options, const DeltasView& result,
                           absl::Span<float> parameters, uint32_t* invalid) = 0;

  // out <- p - eta * sign(m), elementwise, sign(0) = +0; two rounded operations (docs/algorithm.md,
  // overlap = 1).
  virtual void Lookahead(float eta, absl::Span<const float> parameters,
                         absl::Span<const float> momentum, absl::Span<float> out) = 0;

  // *sum += sum over i of mix(2^32 * (first_index + i) + bits(p[i]) + G), modulo 2^64. A tensor's
  // state hash is the sum over its pieces, in any order.
  virtual void StateHash(uint64_t first_index, absl::Span<const float> parameters,
                         uint64_t* sum) = 0;

  // Sums the squares of each row of blocks (64 rows of the matrix) separately, in f64 and in
  // element order. The caller adds the sums of a tensor in order, and tensors in manifest order, so
  // the total has the same bits however rows are sharded over ranks. A GPU uses a different order
  // within a row (kernels/cuda/cuda_backend.h).
  //
  //   workspace  f64 [RowSumsWorkspace(matrix)]  overwritten
  //   sums       f64 [matrix.BlocksDown()]       out
  virtual void RowSums(const MatrixShape& matrix, absl::Span<const float> gradient,
                       double* workspace, absl::Span<double> sums) = 0;
  virtual int64_t RowSumsWorkspace(const MatrixShape& /*matrix*/) const { return 0; }
};

}  // namespace distro
