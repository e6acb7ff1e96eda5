// One rank's part of the optimizer (docs/algorithm.md, "A worker's step"; docs/fsdp.md): the momentum of its block rows, what is
// pending of them, and the operations on both. A run of block rows is a matrix, so a rank works on its runs as if they were
// whole tensors, and gives the bits that one rank with all of them would give.
//
// Elements lie in the memory of the rank's device. Pending coefficients are the host's, with a twin on the device. Every operation is
// enqueued whole and finished once; its status is the device's.
// Not thread-safe: used on the rank's thread, or by others while that one does nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "kernels/backend.h"
#include "kernels/device.h"
#include "worker/optimizer/pending_update.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

// Elements of runs, one span a run, each f32 [run.matrix.elements]; borrowed.
using RunSpans = std::vector<absl::Span<float>>;

class OptimizerShard {
 public:
  // `layout`, `backend` and its `device` are borrowed and outlive the shard, as the memory of `momentum` does. Requires runs in manifest
  // order, and a span of momentum for each.
  OptimizerShard(const Layout* layout, absl::Span<const ShardRun> runs, Backend* backend,
                 Device* device, RunSpans momentum);

  absl::Span<const ShardRun> runs() const { return runs_; }
  const RunSpans& momentum() const { return momentum_; }

  // The sum of squares of each of its block rows, of a gradient or of the momentum.
  //
  //   rows  f64 [block rows of the model, in manifest order]  out; only its own are written
  absl::Status RowSums(const RunSpans& elements, absl::Span<double> rows);

  // m <- beta*m + eta*(g*scale), and the K strongest coefficients of every block as what is pending.
  absl::Status Compress(const CompressOptions& options, const RunSpans& gradient);

  // Error feedback of what is pending, in the segments that are `included` [segments of the layout].
  absl::Status Feedback(const std::vector<bool>& included);

  // out <- parameters - eta * sign(m)
  absl::Status Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) const;

  // What is pending of its blocks: run after run, block after block.
  int kept() const { return kept_; }                                          // K
  absl::Span<const uint16_t> positions() const { return positions_.host(); }  // [blocks, K]
  absl::Span<const float> values() const { return values_.host(); }           // [blocks, K]
  // Where a run's first block is among them.
  int64_t FirstPending(size_t run) const { return first_pending_[run]; }

  // Takes its blocks out of what is pending of the whole model. Requires the layout's shapes.
  absl::Status RestorePending(const PendingUpdate& pending);

 private:
  const MatrixShape& TensorMatrix(const ShardRun& run) const {
    return layout_->tensors()[run.tensor].matrix;
  }
  // Among the blocks of the model.
  int64_t FirstBlockOf(const ShardRun& run) const {
    return layout_->tensors()[run.tensor].first_block + run.first_block;
  }
  void FeedbackOfRun(size_t run, const std::vector<bool>& included);
  absl::Status ResizePending(int kept);

  const Layout* const layout_;
  const std::vector<ShardRun> runs_;
  Backend* const backend_;
  Device* const device_;
  const RunSpans momentum_;
  std::vector<int64_t> first_pending_;    // [runs]
  std::vector<int64_t> first_block_row_;  // [runs], among the block rows of the model
  int64_t blocks_ = 0;

  int kept_ = 0;
  TwinArray<uint16_t> positions_;
  TwinArray<float> values_;
  TwinArray<double> row_sums_;  // of its own block rows, run after run
  DeviceBuffer row_sums_workspace_;
};

// Block rows of a model.
int64_t BlockRows(const Layout& layout);

}  // namespace distro::worker
