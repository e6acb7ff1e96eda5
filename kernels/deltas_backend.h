// A worker's error feedback under the deltas method, on one device (docs/algorithm.md, "Deltas").
// In every round the error buffer accumulates the movement of the parameters, its largest values
// become the update, and the part that the result included is subtracted. Local to a worker;
// replicas apply Backend::ApplyDeltas.
//
//   backend->FindNotFinite(beta, begin, x, e, not_finite);  // every tensor; if it stays 0, then
//   backend->Compress(matrix, {beta, cap, as_dct}, begin, x, e, records);
//   backend->Feedback(matrix, blocks, as_dct, records, result, e, returned);
//
// Operations are enqueued, as those of Backend (kernels/backend.h): arrays and words are in the
// device's memory, and alive until Finish. Arrays of elements are a tensor's whole f32 [elements]
// array, row-major without padding.
//
// For tensors sent as elements and finite numbers, every backend gives the same bits. For tensors
// sent as DCT, backends differ in the last bits of buffer and records.
//
// Not thread-safe: holds scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/model/layout/matrix.h"
#include "kernels/block.h"
#include "kernels/deltas_view.h"
#include "kernels/squares.h"

namespace distro {

struct DeltaCompressOptions {
  float beta = 0;       // decay of the buffer
  uint8_t cap = 255;    // of the scale codes
  bool as_dct = false;  // whether the tensor is sent as DCT
};

// Sums of squares of the pieces of a tensor's elements (kernels/squares.h).
struct SquaresOfPieces {
  absl::Span<double> moved;   // [PiecesOf(elements)]
  absl::Span<double> buffer;  // [PiecesOf(elements)]
};

class DeltaBackend {
 public:
  virtual ~DeltaBackend() = default;

  // *not_finite <- 1 if beta * e + (begin - x) is not finite somewhere. Requires arrays of one
  // size.
  virtual void FindNotFinite(float beta, absl::Span<const float> begin, absl::Span<const float> x,
                             absl::Span<const float> error, uint32_t* not_finite) = 0;

  // e <- a = beta * e + (begin - x); a record for each block of the tensor: the k positions of the
  // largest |a|, or of the largest |DCT of a|, as kernels/cpu/deltas_compress.h says. Requires
  // finite a.
  virtual void Compress(const MatrixShape& matrix, const DeltaCompressOptions& options,
                        absl::Span<const float> begin, absl::Span<const float> x,
                        absl::Span<float> error, const DeltaRecords& records) = 0;

  // Subtracts from e the entries of the blocks' records that the result included, and adds their
  // number to *returned. Of the result, only offsets and positions are read.
  virtual void Feedback(const MatrixShape& matrix, BlockRange blocks, bool as_dct,
                        const DeltaRecordsView& sent, const DeltasView& result,
                        absl::Span<float> error, uint64_t* returned) = 0;

  // moved <- of each piece the sum of (begin - x)^2, buffer <- that of e^2; in f64, with the same
  // bits on every backend.
  virtual void SumSquares(absl::Span<const float> begin, absl::Span<const float> x,
                          absl::Span<const float> error, const SquaresOfPieces& sums) = 0;
};

// Aborts unless the sums are of arrays of this size.
inline void CheckPieces(const SquaresOfPieces& sums, size_t elements) {
  const auto pieces = static_cast<size_t>(PiecesOf(static_cast<int64_t>(elements)));
  CheckShape(sums.moved.size() == pieces && sums.buffer.size() == pieces,
             "sums are not of the array's pieces");
}

}  // namespace distro
