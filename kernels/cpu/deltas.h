// The operations of the deltas method on a tensor's elements (docs/algorithm.md, "Deltas"), on the
// CPU: what a worker's error buffer takes, what is sent of it, what leaves it when it came back,
// and how every replica applies a result. All but the last are local to a worker; applying is
// exact, the same bits on every replica. Choosing, feedback and applying are here for tensors whose
// blocks travel as they are; delta_transform.h has them for those that travel as their DCT.
//
// Arrays are a tensor's whole f32 [elements] array, row-major without padding; `blocks` says which
// of its blocks an operation touches. Block b of that range is block update_first + b of the update
// and result_first + b of the result. Pure functions, thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "common/update/delta_update.h"
#include "common/update/scale.h"
#include "kernels/block.h"

namespace distro {

// Whether beta * e + (begin - x) is finite everywhere. Requires arrays of one size.
bool DeltaIsFinite(float beta, absl::Span<const float> begin, absl::Span<const float> x,
                   absl::Span<const float> e);

// e <- a = beta * e + (begin - x), three rounded operations an element. As above.
void FormDelta(float beta, absl::Span<const float> begin, absl::Span<const float> x,
               absl::Span<float> e);

// Appends a record for each block: the K positions of the largest |a|, ties to the lower position,
// their signs (0 counts as +), and the scale code of |a| there, at most `cap`. Requires finite
// elements and 1 <= update->k <= 4096.
void AppendLargest(const MatrixShape& matrix, absl::Span<const float> a, uint8_t cap,
                   DeltaUpdate* update);

// Error feedback: e <- e - q at the positions of `update` that `result` has too; q is sign * M(c) *
// 2^-44, exact in f32. Positions outside the tensor are ignored.
void SubtractReturned(const MatrixShape& matrix, BlockRange blocks, const DeltaUpdate& update,
                      int64_t update_first, const DeltaResult& result, int64_t result_first,
                      absl::Span<float> e);

// What each code and level moves an element by: float(R) * (alpha * 2^-44), rounded once. alpha is
// 0 or at least 2^-82, so that its product with 2^-44 is exact.
class StepTable {
 public:
  explicit StepTable(float alpha);
  // [codes, levels]
  const std::array<std::array<float, kLevels>, kScaleCodes>& steps() const { return steps_; }

 private:
  std::array<std::array<float, kLevels>, kScaleCodes> steps_;
};

// p <- p - step with its sign, one rounded operation, independent of the caller's floating-point
// environment. Requires a valid result.
void ApplyDeltas(const MatrixShape& matrix, BlockRange blocks, const DeltaResult& result,
                 int64_t result_first, const StepTable& table, absl::Span<float> parameters);

}  // namespace distro
