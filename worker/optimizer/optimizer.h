// The worker's half of the optimizer (docs/algorithm.md, "A worker's step") over the shards of its ranks: what is decided once a
// worker, and what leaves it. Its bytes depend on the momentum only, not on how that is cut: the same payloads, feedback and
// state for every sharding strategy and number of ranks. Parameters are not its business.
//
// Not thread-safe, except that EncodeSegment may be called from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/round_log/committed_round.h"
#include "distro/v1/round.pb.h"
#include "kernels/block.h"
#include "worker/optimizer/optimizer_shard.h"
#include "worker/optimizer/pending_update.h"

namespace distro::worker {

// The round whose update was handed in and whose result is not known.
struct PendingRound {
  RoundId round;
  int k = 0;
};

// Blocks of the model that one shard holds: consecutive, and consecutive in its pending arrays.
struct ShardPiece {
  const OptimizerShard* shard = nullptr;
  int64_t first_block = 0;  // among the blocks of the model
  int64_t blocks = 0;
  int64_t first_pending = 0;  // in the shard's pending arrays, in blocks

  absl::Span<const uint16_t> positions() const;  // [blocks, K]
  absl::Span<const float> values() const;        // [blocks, K]
};

class Optimizer {
 public:
  // `shards` are borrowed and outlive the optimizer. Requires that together they hold every block once. (Further ranks may hold
  // copies that do the same: they do not matter here.)
  Optimizer(const Layout* layout, std::vector<const OptimizerShard*> shards);

  // ||g|| over the whole model, of the sums that OptimizerShard::RowSums wrote. Not finite when an element is not.
  double Norm(absl::Span<const double> row_sums) const;
  // How the shards compress: momentum, step, clipping. `norm` is finite.
  static CompressOptions CompressionOf(const v1::StepParameters& step, double norm);

  // What the shards hold as pending is of this round. What was pending before counts as not included.
  void SetPending(const PendingRound& pending) { pending_ = pending; }
  const std::optional<PendingRound>& pending() const { return pending_; }
  // What is pending counts as not included: it stays in the momentum.
  void ForgetPending() { pending_.reset(); }

  // The payload of a segment; the same bytes as often as it is asked for. Requires pending().
  SharedBytes EncodeSegment(SegmentId segment) const;

  // The segments [segments] in which the shards have to take the pending coefficients out of the momentum: those whose bitmap
  // includes `member` (index into the header's members). Empty: another round, or nothing, is pending. Afterwards nothing is.
  std::vector<bool> TakeFeedback(const CommittedRound& round, int member);

  // The segment's blocks in order, as pieces of shards.
  std::vector<ShardPiece> SegmentPieces(SegmentId segment) const;
  // The momentum where it is: of every tensor its runs, in order. Requires shards in the host's memory.
  TensorPieces momentum() const;

  const Layout& layout() const { return *layout_; }

 private:
  const Layout* const layout_;
  const std::vector<const OptimizerShard*> shards_;
  std::vector<ShardPiece> pieces_;  // ascending by first_block: all blocks
  std::optional<PendingRound> pending_;
};

}  // namespace distro::worker
