// A worker's error feedback under the deltas method, on one device (docs/algorithm.md, "Deltas").
// In every round the error buffer accumulates the movement of the parameters, its largest values
// become the update, and the part that the result included is subtracted. Local to a worker;
// replicas apply Backend::ApplyDeltas.
//
//   backend->IsFinite(beta, begin, x, e)                          // for every tensor, then
//   backend->Compress(matrix, as_dct, {beta, cap}, begin, x, e, &update);
//   backend->Feedback(matrix, as_dct, blocks, update, 0, result, 0, e);
//
// Arrays of elements are a tensor's whole f32 [elements] array, row-major without padding, in
// device memory (kernels/device.h). Updates and results are in host memory. Calls are synchronous
// and return the device's status.
//
// For tensors sent as elements and finite numbers, every backend gives the same bits. For tensors
// sent as DCT, backends differ in the last bits.
//
// Not thread-safe: holds scratch memory.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "common/update/delta_update.h"
#include "kernels/block.h"

namespace distro {

struct DeltaCompressOptions {
  float beta = 0;     // decay of the buffer
  uint8_t cap = 255;  // of the scale codes
};

class DeltaBackend {
 public:
  virtual ~DeltaBackend() = default;

  // Whether beta * e + (begin - x) is finite everywhere. Requires arrays of one size.
  virtual absl::StatusOr<bool> IsFinite(float beta, absl::Span<const float> begin,
                                        absl::Span<const float> x,
                                        absl::Span<const float> error) = 0;

  // e <- a = beta * e + (begin - x), and appends a record for each block: the update->k positions
  // of the largest |a|, or of the largest |DCT of a|, as kernels/cpu/deltas.h says. Requires
  // IsFinite and 1 <= update->k <= 4096.
  virtual absl::Status Compress(const MatrixShape& matrix, bool as_dct,
                                const DeltaCompressOptions& options, absl::Span<const float> begin,
                                absl::Span<const float> x, absl::Span<float> error,
                                DeltaUpdate* update) = 0;

  // Subtracts from e the entries of `blocks` that the result included. Block b of the range is
  // block update_first + b of the update and result_first + b of the result. Returns the number of
  // positions subtracted.
  virtual absl::StatusOr<int64_t> Feedback(const MatrixShape& matrix, bool as_dct,
                                           BlockRange blocks, const DeltaUpdate& update,
                                           int64_t update_first, const DeltaResult& result,
                                           int64_t result_first, absl::Span<float> error) = 0;
};

}  // namespace distro
