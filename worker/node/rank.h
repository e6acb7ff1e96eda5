// One rank of a node (docs/fsdp.md): its part of parameters, gradient, the update rule's state
// (momentum) and the worker's copy, and the operations of a round on them. All are in the device's
// memory or, with cpu_offload, all but the gradient in host memory. All ranks run the same
// operation at the same time (worker/node/node.h).
//
// An operation enqueues all its work and then waits once: when it returns, the device is done, and
// the status includes the device's errors.
//
// Used on the rank's thread only, unless stated otherwise. Borrows layout, model and communicator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/model/layout/layout.h"
#include "kernels/replica/round_update.h"
#include "worker/fsdp/communicator.h"
#include "worker/fsdp/rank_buffer.h"
#include "worker/fsdp/unit_driver.h"
#include "worker/model/model.h"
#include "worker/node/communicator_exchange.h"
#include "worker/node/node_devices.h"
#include "worker/node/staged_result.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/node_options.h"
#include "worker/plan/shard_plan.h"
#include "worker/rules/shard_rule.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

class Rank {
 public:
  struct Dependencies {
    const Layout* layout = nullptr;
    const Model* model = nullptr;
    std::shared_ptr<const ShardPlan> shards;
    std::shared_ptr<const ShardPlan> whole;  // of the same units for one rank
    const UpdateRuleKind* rule = nullptr;
    std::shared_ptr<const NodeDevices> devices;
    Communicator* communicator = nullptr;
    BatchShape micro_batch;
  };

  // Parameters and the rule's state are 0. `copy`: allocates a copy of the parameters.
  // ResourceExhausted: no memory; names its purpose.
  static absl::StatusOr<std::unique_ptr<Rank>> Create(const NodeOptions& options, bool copy,
                                                      const Dependencies& deps);

  // Reads its parameters from the snapshot. Requires a snapshot of the layout.
  absl::Status Load(const SnapshotFile& snapshot);
  absl::Status Apply(const v1::StepParameters& step, const DecodedRound& decoded);
  // Its parameters' contributions to the tensors' hashes, [tensors], after the last Load or Apply.
  absl::Span<const uint64_t> tensor_hashes() const { return hashes_->host(); }

  // One round of micro-batches; see UnitDriver::Gradient.
  absl::StatusOr<double> Gradient(const TokenBatch* batch, GradientAt at,
                                  Accumulation accumulation);
  // The gradient is complete: divides it by the number of micro-batches, and sums squares into
  // `row_sums`, as RowSums::Of. The rule may then change its runs of the copy.
  absl::Status FinishGradient(int64_t micro_batches, absl::Span<double> row_sums);
  absl::StatusOr<double> Loss(const TokenBatch* batch);
  // UnitDriver::NextLogits, at the parameters.
  absl::StatusOr<std::vector<float>> NextLogits(const TokenBatch* batch);
  // See Node::PeakFlops.
  absl::StatusOr<double> PeakFlops();

  absl::Status MakeLookahead(float eta);
  // copy <- parameters.
  absl::Status BeginLocalSteps();

  // The rule of its shard, with the rank's gradient, parameters and copy.
  ShardRule& shard_rule() { return *shard_rule_; }
  const ShardRule& shard_rule() const { return *shard_rule_; }
  // Its runs of the parameters, where they are.
  absl::Span<const ShardRun> parameter_runs() const { return parameter_shard_->runs; }
  const RunSpans& parameters() const { return parameter_spans_; }
  const MemoryCounter& memory() const { return memory_; }

 private:
  explicit Rank(const Dependencies& deps) : deps_(deps) {}
  absl::Status Allocate(const NodeOptions& options, bool copy);
  absl::Status AllocateBuffers(const NodeOptions& options, bool copy);
  ShardArrays MakeSpans(Sharding sharding);
  RuleShard MakeRuleShard(Sharding sharding);
  // Waits for the device, and checks that the group has not ended meanwhile.
  absl::Status FinishCollectives(absl::string_view what);
  absl::Status FinishHashes();
  absl::Status MoveGradient(int64_t micro_batches);
  // Gathers the runs of the copy that other ranks have changed.
  absl::Status GatherCopy();
  // The device of parameters, their copy and the rule's state.
  const RankDevice& master() const { return host_.has_value() ? *host_ : compute_; }

  const Dependencies deps_;
  FloatType param_dtype_ = FloatType::kF32;
  RankDevice compute_;
  std::optional<RankDevice> host_;  // with cpu_offload
  MemoryCounter memory_;
  // Its runs of each: its shard, or everything.
  const RankShard* parameter_shard_ = nullptr;
  const RankShard* optimizer_shard_ = nullptr;
  bool gathers_copy_ = false;     // each rank moves its runs of a copy that all have
  bool copy_is_gathered_ = true;  // with that: here are the other ranks' runs too
  std::unique_ptr<UnitDriver> driver_;
  RankBuffer parameters_;
  RankBuffer gradient_;
  RankBuffer host_gradient_;          // with cpu_offload: of what is compressed
  std::vector<RankBuffer> elements_;  // of the rule
  RankBuffer copy_;
  RunSpans parameter_spans_;               // of parameter_shard_
  std::vector<int64_t> gradient_offsets_;  // of optimizer_shard_
  std::unique_ptr<TileUpdater> updater_;
  std::unique_ptr<StagedResult> result_;
  std::optional<TwinArray<uint64_t>> hashes_;   // [tensors]
  std::optional<TwinArray<uint32_t>> invalid_;  // [1], of Apply
  std::unique_ptr<CommunicatorExchange> exchange_;
  std::unique_ptr<Orthogonalizer> orthogonalizer_;
  std::unique_ptr<ShardRule> shard_rule_;
};

}  // namespace distro::worker
