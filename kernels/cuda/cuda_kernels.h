// The operations of kernels/backend.h on one GPU. Results, ties, padding and edges are as defined
// there and in docs/algorithm.md; the comments below state the differences.
//
// Every function enqueues on `stream` and returns. None allocates, synchronises or keeps a pointer.
// Arrays are naturally aligned, in memory that the device can access, and alive until the stream
// has executed the call. The status says whether the launch was accepted: Internal with CUDA's name
// of the error, which may come from an earlier call. Errors inside a kernel appear when the stream
// is synchronised. Shapes that do not match are bugs of the caller (CHECK). Thread-safe. The
// current device must be the stream's.
//
// Apply, ApplyDeltas, Lookahead and StateHash give the reference's bits; DeltaSquares, and
// CompressDeltas and FeedbackDeltas on elements give those of the CPU's functions. Compress and
// Feedback, and CompressDeltas and FeedbackDeltas on frequencies, differ from the CPU in the last
// bits. They give the same bits on every device, in the tests' emulation, and however block rows
// are grouped.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/model/layout/matrix.h"
#include "kernels/block.h"
#include "kernels/cuda/deltas_apply_block.h"
#include "kernels/cuda/deltas_compress_block.h"
#include "kernels/cuda/deltas_feedback_block.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/signs_apply_block.h"
#include "kernels/cuda/signs_compress_block.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace distro::cuda {

using Stream = CUstream_st*;

// Backend::CompressSigns: moves 12 bytes per parameter.
absl::Status CompressSigns(const SignCompressOptions& options,
                           absl::Span<const CompressSignsTensor> tensors, Stream stream);

// Backend::FeedbackSigns: moves 8 bytes per parameter.
absl::Status FeedbackSigns(const FeedbackSignsArguments& arguments, Stream stream);

// Backend::ApplyVotes. The caller sets *invalid to kAllBlocksValid; afterwards it is the number of
// a block with invalid votes, if there is one. Such a block's parameters do not change.
absl::Status ApplyVotes(const ApplyVotesArguments& arguments, Stream stream);

// Backend::ApplyDeltas, *invalid as above.
absl::Status ApplyDeltas(const ApplyDeltasArguments& arguments, Stream stream);

// Operations of the deltas method, local to a worker. Contracts as those of the named CPU functions
// (kernels/cpu/deltas_compress.h, kernels/cpu/deltas_transform.h).
//
// DeltaIsFinite: the caller sets *not_finite to 0; it becomes 1 if a value is not finite. 12 bytes
// per parameter.
absl::Status FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                           int64_t elements, uint32_t* not_finite, Stream stream);

// FormDelta and then AppendLargest, for a range of blocks: 16 bytes per parameter. The error buffer
// does not overlap another array.
absl::Status CompressDeltas(const CompressDeltasArguments& arguments, Stream stream);

// SubtractReturned; its count is added to *returned.
absl::Status FeedbackDeltas(const FeedbackDeltasArguments& arguments, Stream stream);

// DeltaBackend::SumSquares: 12 bytes per parameter.
absl::Status DeltaSquares(const float* begin, const float* x, const float* error, int64_t elements,
                          double* moved, double* buffer, Stream stream);

// Backend::Lookahead.
absl::Status Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                       int64_t elements, Stream stream);

// Adds Backend::StateHash to *sum, modulo 2^64.
absl::Status StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                       uint64_t* sum, Stream stream);

// Sums the squares of each of the matrix's block rows, in the order of elementwise.h, into
// row_sums[BlocksDown()]. workspace: SquaresWorkspace(matrix) doubles.
absl::Status SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                          double* row_sums, Stream stream);

}  // namespace distro::cuda
