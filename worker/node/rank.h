// What one rank of a node holds, and what it does with it (docs/fsdp.md): its part of parameters, gradient, momentum and
// lookahead copy, in its own memory, and the operations of a round on them. The node's training thread asks all ranks for the
// same operation at the same time (worker/node/node.h).
//
// Used on the rank's thread only. Borrows what it is given.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/snapshot.h"
#include "common/layout/layout.h"
#include "common/replica/round_update.h"
#include "kernels/backend.h"
#include "worker/fsdp/communicator.h"
#include "worker/fsdp/memory_counter.h"
#include "worker/fsdp/rank_buffer.h"
#include "worker/fsdp/shard_plan.h"
#include "worker/fsdp/unit_driver.h"
#include "worker/model/model.h"
#include "worker/node/node_options.h"
#include "worker/optimizer/optimizer_shard.h"

namespace distro::worker {

class Rank {
 public:
  struct Parts {
    const Layout* layout = nullptr;
    const Model* model = nullptr;
    const ShardPlan* shards = nullptr;
    const ShardPlan* whole = nullptr;  // of the same units for one rank
    Communicator* communicator = nullptr;
  };

  // Parameters and momentum are 0. `lookahead`: has memory for the copy. ResourceExhausted: no memory; names what it is for.
  static absl::StatusOr<std::unique_ptr<Rank>> Create(const NodeOptions& options, bool lookahead,
                                                      const Parts& parts);

  // Takes its parameters out of the snapshot. Requires one of the layout.
  void Load(const SnapshotFile& snapshot);
  // Applies decoded votes [segments].
  absl::Status Apply(const v1::StepParameters& step, absl::Span<const Votes> votes);
  // The parts of the tensors' hashes that its parameters make, [tensors], as Load and Apply left them.
  absl::Span<const uint64_t> tensor_hashes() const { return tensor_hashes_; }

  // One round of micro-batches; see UnitDriver::Gradient.
  absl::StatusOr<double> Gradient(const TokenBatch* batch, GradientAt at,
                                  Accumulation accumulation);
  // The gradient is complete: divides it by the number of micro-batches, and sums squares into `row_sums`, as
  // OptimizerShard::RowSums.
  absl::Status FinishGradient(int64_t micro_batches, absl::Span<double> row_sums);
  absl::StatusOr<double> Loss(const TokenBatch* batch);

  absl::Status MakeLookahead(float eta);
  void Compress(const CompressOptions& options) { optimizer_->Compress(options, gradient_runs_); }

  OptimizerShard& optimizer() { return *optimizer_; }
  const OptimizerShard& optimizer() const { return *optimizer_; }
  // Its runs of the parameters, where they are.
  absl::Span<const ShardRun> parameter_runs() const { return parameter_shard_->runs; }
  const RunSpans& parameters() const { return parameter_spans_; }
  const MemoryCounter& memory() const { return memory_; }

 private:
  explicit Rank(const Parts& parts) : parts_(parts), backend_(MakeCpuBackend()) {}
  absl::Status Allocate(const NodeOptions& options, bool lookahead);
  void Hash();
  absl::Status GatherLookahead();

  const Parts parts_;
  const std::unique_ptr<Backend> backend_;
  MemoryCounter memory_;
  // Which runs it has of each: its shard, or everything.
  const RankShard* parameter_shard_ = nullptr;
  const RankShard* optimizer_shard_ = nullptr;
  bool gathers_lookahead_ = false;
  std::unique_ptr<UnitDriver> driver_;
  RankBuffer parameters_;
  RankBuffer gradient_;
  RankBuffer momentum_;
  RankBuffer lookahead_;
  RunSpans parameter_spans_;  // of parameter_shard_
  // Of optimizer_shard_:
  RunSpans gradient_runs_;
  RunSpans parameter_runs_;
  RunSpans lookahead_runs_;
  std::unique_ptr<TileUpdater> updater_;
  std::unique_ptr<OptimizerShard> optimizer_;
  std::vector<uint64_t> tensor_hashes_;
};

}  // namespace distro::worker
