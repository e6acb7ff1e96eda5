// Selection and feedback of the deltas method (kernels/cpu/deltas_compress.h) for a tensor sent as
// DCT (docs/algorithm.md, "Deltas"): positions are frequencies, and all 4096 of a block are valid.
//
//   DeltaTransform transform;
//   transform.AppendLargest(matrix, a, cap, &update);              // the update to send
//   transform.SubtractReturned(matrix, blocks, sent, result, e);   // error feedback
//
// Arrays and block ranges are as in deltas_compress.h. Not thread-safe: holds scratch memory.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/matrix.h"
#include "kernels/block.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/top_k.h"
#include "kernels/deltas_view.h"

namespace distro {

class DeltaTransform {
 public:
  // The fastest kernels that this CPU runs.
  DeltaTransform() : DeltaTransform(SupportedVectorKernels().back()) {}
  explicit DeltaTransform(const VectorKernels& kernels) : transform_(*kernels.transform) {}

  // As AppendLargest in deltas_compress.h, applied to the DCT of each block.
  void AppendLargest(const MatrixShape& matrix, absl::Span<const float> a, uint8_t cap,
                     DeltaUpdate* update);

  // e <- e - the inverse DCT of the entries that `result` includes, inside the tensor. Returns the
  // number of these entries.
  int64_t SubtractReturned(const MatrixShape& matrix, BlockRange blocks,
                           const DeltaRecordsView& sent, const DeltasView& result,
                           absl::Span<float> e);

 private:
  void Gather(const BlockSite& site, const float* elements);

  const TransformKernels& transform_;

  // Scratch of one block.
  alignas(64) float block_[kBlockElements];
  alignas(64) float scratch_[2 * kBlockElements];
  uint16_t positions_[kBlockElements];
  float chosen_[kBlockElements];
  TopKScratch top_k_;
};

}  // namespace distro
