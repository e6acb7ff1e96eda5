// One rank's part of the optimizer (docs/algorithm.md, "A worker's step"; docs/fsdp.md): the momentum of its block rows, what is
// pending of them, and the operations on both. A run of block rows is a matrix, so a rank works on its runs as if they were
// whole tensors, and gives the bits that one rank with all of them would give.
//
// Elements lie in the rank's memory, which may be a device's: whatever the backend takes. Pending coefficients are the host's.
// Not thread-safe: used on the rank's thread, or by others while that one does nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "kernels/backend.h"
#include "worker/fsdp/shard_plan.h"
#include "worker/optimizer/pending_update.h"

namespace distro::worker {

// Elements of runs, one span a run, each f32 [run.matrix.elements]; borrowed.
using RunSpans = std::vector<absl::Span<float>>;

class OptimizerShard {
 public:
  // `layout` and `backend` are borrowed and outlive the shard, as the memory of `momentum` does. Requires runs in manifest order,
  // and a span of momentum for each.
  OptimizerShard(const Layout* layout, absl::Span<const ShardRun> runs, Backend* backend,
                 RunSpans momentum);

  absl::Span<const ShardRun> runs() const { return runs_; }
  const RunSpans& momentum() const { return momentum_; }

  // The sum of squares of each of its block rows, of a gradient or of the momentum.
  //
  //   rows  f64 [block rows of the model, in manifest order]  out; only its own are written
  void RowSums(const RunSpans& elements, absl::Span<double> rows) const;

  // m <- beta*m + eta*(g*scale), and the K strongest coefficients of every block as what is pending.
  void Compress(const CompressOptions& options, const RunSpans& gradient);

  // Error feedback of what is pending, in the segments that are `included` [segments of the layout].
  void Feedback(const std::vector<bool>& included);

  // out <- parameters - eta * sign(m)
  void Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) const;

  // What is pending of its blocks: run after run, block after block.
  int kept() const { return kept_; }                                   // K
  absl::Span<const uint16_t> positions() const { return positions_; }  // [blocks, K]
  absl::Span<const float> values() const { return values_; }           // [blocks, K]
  // Where a run's first block is among them.
  int64_t FirstPending(size_t run) const { return first_pending_[run]; }

  // Takes its blocks out of what is pending of the whole model. Requires the layout's shapes.
  void RestorePending(const PendingUpdate& pending);

 private:
  const MatrixShape& TensorMatrix(const ShardRun& run) const {
    return layout_->tensors()[run.tensor].matrix;
  }
  // Among the blocks of the model.
  int64_t FirstBlockOf(const ShardRun& run) const {
    return layout_->tensors()[run.tensor].first_block + run.first_block;
  }
  void FeedbackOfRun(size_t run, const std::vector<bool>& included);
  void ResizePending(int kept);

  const Layout* const layout_;
  const std::vector<ShardRun> runs_;
  Backend* const backend_;
  const RunSpans momentum_;
  std::vector<int64_t> first_pending_;    // [runs]
  std::vector<int64_t> first_block_row_;  // [runs], among the block rows of the model
  int64_t blocks_ = 0;

  int kept_ = 0;
  std::vector<uint16_t> positions_;
  std::vector<float> values_;
};

// Block rows of a model.
int64_t BlockRows(const Layout& layout);

}  // namespace distro::worker
