// Error feedback under the deltas method on the CPU (docs/algorithm.md, "Deltas"): accumulation
// into the error buffer, selection of the update, and subtraction of the part that the result
// included. Local arithmetic; replicas apply Backend::ApplyDeltas. Selection and feedback here are
// for tensors sent as elements; deltas_transform.h has them for tensors sent as DCT.
//
// Arrays are a tensor's whole f32 [elements] array, row-major without padding; `blocks` says which
// of its blocks an operation touches. Records and result cover exactly that range. Pure functions,
// thread-safe.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/matrix.h"
#include "kernels/block.h"
#include "kernels/deltas_view.h"

namespace distro {

// Whether beta * e + (begin - x) is finite everywhere. Requires arrays of one size.
bool DeltaIsFinite(float beta, absl::Span<const float> begin, absl::Span<const float> x,
                   absl::Span<const float> e);

// e <- a = beta * e + (begin - x), three rounded operations per element. Sizes as above.
void FormDelta(float beta, absl::Span<const float> begin, absl::Span<const float> x,
               absl::Span<float> e);

// Appends a record for each block: the K positions of the largest |a|, ties to the lower position,
// their signs (0 counts as +), and the scale code of |a| there, at most `cap`. Requires finite
// elements and 1 <= update->k <= 4096.
void AppendLargest(const MatrixShape& matrix, absl::Span<const float> a, uint8_t cap,
                   DeltaUpdate* update);

// Error feedback: e <- e - q at the positions of `sent` that are also in `result`; q is sign * M(c)
// * 2^-44, exact in f32. Positions outside the tensor are ignored. Returns the number of positions
// subtracted.
int64_t SubtractReturned(const MatrixShape& matrix, BlockRange blocks, const DeltaRecordsView& sent,
                         const DeltasView& result, absl::Span<float> e);

// sums <- of each piece the sum of a^2, and of (a - b)^2, in the order of kernels/squares.h.
//
//   sums  f64 [PiecesOf(elements)]  out
void Squares(absl::Span<const float> a, absl::Span<double> sums);
void SquaresOfDifference(absl::Span<const float> a, absl::Span<const float> b,
                         absl::Span<double> sums);

}  // namespace distro
