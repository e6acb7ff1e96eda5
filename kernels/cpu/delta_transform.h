// The operations of the deltas method (kernels/cpu/deltas.h) on a tensor whose blocks travel as
// their DCT (docs/algorithm.md, "Deltas"): positions are frequencies, and all 4096 of a block are
// inside. Choosing and feedback are local; applying gives the same bits at every vector width.
//
//   DeltaTransform transform;
//   transform.AppendLargest(matrix, a, cap, &update);                        // what is sent
//   transform.SubtractReturned(matrix, blocks, update, 0, result, 0, e);     // it came back
//   transform.Apply(matrix, blocks, result, 0, alpha, parameters);           // at every replica
//
// Arrays, ranges and their numbers are as in deltas.h. One caller at a time: it has scratch.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/layout/matrix.h"
#include "common/update/delta_update.h"
#include "kernels/block.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/top_k.h"

namespace distro {

class DeltaTransform {
 public:
  // The fastest kernels that this CPU runs.
  DeltaTransform() : DeltaTransform(SupportedVectorKernels().back()) {}
  explicit DeltaTransform(const VectorKernels& kernels)
      : transform_(*kernels.transform), exact_(*kernels.exact) {}

  // As the function of that name, of the DCT of each block.
  void AppendLargest(const MatrixShape& matrix, absl::Span<const float> a, uint8_t cap,
                     DeltaUpdate* update);

  // e <- e - the inverse DCT of what came back, inside the tensor.
  void SubtractReturned(const MatrixShape& matrix, BlockRange blocks, const DeltaUpdate& update,
                        int64_t update_first, const DeltaResult& result, int64_t result_first,
                        absl::Span<float> e);

  // p <- p - float(IDCTint(V)) * w of every block that has entries, independent of the caller's
  // floating-point environment. Requires a valid result, and alpha as StepTable does.
  void Apply(const MatrixShape& matrix, BlockRange blocks, const DeltaResult& result,
             int64_t result_first, float alpha, absl::Span<float> parameters);

 private:
  void Gather(const BlockSite& site, const float* elements);
  // V of a block's entries into values_; h.
  int FormVotes(const DeltaResult& result, uint32_t begin, uint32_t end);

  const TransformKernels& transform_;
  const ExactKernels& exact_;

  // Scratch of one block.
  alignas(64) float block_[kBlockElements];
  alignas(64) float scratch_[2 * kBlockElements];
  alignas(64) float coefficients_[kBlockElements];
  alignas(64) int32_t sums_[kBlockElements];
  alignas(64) int32_t integer_scratch_[2 * kBlockElements];
  uint16_t positions_[kBlockElements];
  float chosen_[kBlockElements];
  int16_t values_[kBlockElements];
  TopKScratch top_k_;
};

}  // namespace distro
