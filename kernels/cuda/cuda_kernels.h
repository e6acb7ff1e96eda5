// The operations of kernels/backend.h on one GPU. What they compute, ties, padding and edges are as
// stated there and in docs/algorithm.md; below stands what is different here.
//
// Every function enqueues on `stream` and returns. None allocates, synchronises or keeps a pointer;
// arrays are device memory (or memory that the device can reach), 4-byte elements on 4-byte
// boundaries and so on, alive until the stream has passed the call. The status tells whether the
// launch was accepted (Internal with CUDA's name of the error, which may be an earlier call's);
// what goes wrong in a kernel is seen when the stream is synchronised. Shapes that do not match are
// bugs of the caller (CHECK). Thread-safe. The current device must be the stream's.
//
// Apply, ApplyDeltas, Lookahead and StateHash give the reference's bits, CompressDeltas and
// FeedbackDeltas of elements those of the CPU's functions. Compress and Feedback, and those two of
// frequencies, give the same bits on every device and for every cut of a tensor into runs of block
// rows, and the bits of the tests' emulation; they differ from the CPU in the last ones.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/layout/matrix.h"
#include "kernels/block.h"
#include "kernels/cuda/apply_block.h"
#include "kernels/cuda/apply_deltas_block.h"
#include "kernels/cuda/compress_block.h"
#include "kernels/cuda/compress_deltas_block.h"
#include "kernels/cuda/feedback_deltas_block.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace distro::cuda {

using Stream = CUstream_st*;

// Backend::Compress: 12 bytes a parameter.
absl::Status Compress(const CompressArguments& arguments, Stream stream);

// Backend::Feedback: 8 bytes a parameter.
absl::Status Feedback(const FeedbackArguments& arguments, Stream stream);

// Backend::Apply. *invalid, which the caller sets to kAllVotesValid, names a block whose votes are
// not valid afterwards (Backend's DataLoss): such a block keeps its parameters.
absl::Status Apply(const ApplyArguments& arguments, Stream stream);

// Backend::ApplyDeltas, *invalid as above.
absl::Status ApplyDeltas(const ApplyDeltasArguments& arguments, Stream stream);

// Of the deltas method, local to a worker; contracts as those of the CPU's functions that are named
// (kernels/cpu/deltas.h, kernels/cpu/delta_transform.h).
//
// DeltaIsFinite: *not_finite, which the caller sets to 0, is 1 afterwards where something is not.
// 12 bytes a parameter.
absl::Status FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                           int64_t elements, uint32_t* not_finite, Stream stream);

// FormDelta and then AppendLargest, of a range of blocks: 16 bytes a parameter. The error buffer is
// none of the other arrays.
absl::Status CompressDeltas(const CompressDeltasArguments& arguments, Stream stream);

// SubtractReturned; its count is added to *returned.
absl::Status FeedbackDeltas(const FeedbackDeltasArguments& arguments, Stream stream);

// Backend::Lookahead.
absl::Status Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                       int64_t elements, Stream stream);

// Adds Backend::StateHash to *sum, modulo 2^64.
absl::Status StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                       uint64_t* sum, Stream stream);

// The sums of squares of the matrix's block rows, each in an order of its own (elementwise.h):
// row_sums[BlocksDown()]. workspace: SquaresWorkspace(matrix) doubles.
int64_t SquaresWorkspace(const MatrixShape& matrix);
absl::Status SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                          double* row_sums, Stream stream);

}  // namespace distro::cuda
