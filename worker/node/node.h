// A worker's node: the model on R ranks (docs/fsdp.md). The training thread asks it for what the
// algorithm does in a round; the node has every rank do its part on the rank's thread and waits for
// all. What it holds and gives does not show how it is cut: parameters, state hash and, with equal
// momentum, payloads are the same bits for every sharding strategy and R. One rank is a node like
// any other.
//
// A rank that fails ends the node: the others return, the status names rank and operation, has
// reason `rank_failed` and comes again from every later call that needs the ranks. What was in
// memory is then of use only as far as the functions below say.
//
// Not thread-safe: the training thread owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/round_log/committed_round.h"
#include "distro/v1/round.pb.h"
#include "worker/fsdp/collective_time.h"
#include "worker/model/model.h"
#include "worker/node/learner.h"
#include "worker/optimizer/delta_readings.h"
#include "worker/optimizer/optimizer.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/node_options.h"
#include "worker/plan/shard_plan.h"
#include "worker/state/state_file.h"

namespace distro::worker {

class NodeDevices;
class Rank;
class RankThreads;

class Node final : public Learner {
 public:
  struct Parts {
    const Layout* layout = nullptr;
    const Model* model = nullptr;
    // By which the worker learns.
    const UpdateRuleKind* rule = &kSignMomentum;
    // Has memory for a copy of the parameters: for overlap, or for local steps.
    bool copy = false;
    // What the plan of memory goes by: samples and positions of a micro-batch, K.
    int micro_batch_samples = 1;
    int sequence_length = 1;
    int kept_per_block = 0;
    // Receives the plan; nullptr: nobody does.
    Log* log = nullptr;
    // nullptr: those of NodeOptions.
    std::shared_ptr<const NodeDevices> devices = nullptr;
  };

  // Plans the memory, then starts the ranks; parameters and momentum are 0. Layout and model
  // outlive the node, and a rank that is stuck. InvalidArgument names the option. ResourceExhausted
  // with reason `does_not_fit`: the plan needs more than there is; names what would fit.
  // FailedPrecondition: there is no GPU.
  static absl::StatusOr<std::unique_ptr<Node>> Create(const NodeOptions& options,
                                                      const Parts& parts);
  ~Node() override;

  // How many ranks Create makes, and what it would say about devices and ranks, before anything
  // else is known. InvalidArgument names the flag.
  static absl::StatusOr<int> CheckDevices(const NodeOptions& options);

  // What the process may have resident with a node, of which it has `held` without one. With ranks
  // on CPUs: what the machine or the control group allows, or memory_limit_bytes a rank beside what
  // is held. No bound with GPUs, each of which says by itself when its memory is full.
  static int64_t HostMemoryFor(const NodeOptions& options, int ranks, int64_t held);

  // A rank did not return in time from what it was asked. It may come back at any time, and uses
  // what it shares with this object, which may be gone by then; layout and model have to stay.
  bool has_stuck_rank() const;

  int ranks() const;
  const UpdateRuleKind& rule() const override { return *parts_.rule; }

  // Parameters. node_rounds.cc.

  absl::Status Load(const std::string& snapshot_path, RoundId next_round,
                    uint64_t log_hash) override;
  absl::Status Apply(const CommittedRound& round) override;
  absl::StatusOr<HostTensors> parameters() const override;

  // Gradient. One round of micro-batches, 1 .. ranks() of them: rank r computes the r-th. Returns
  // their mean losses.
  //
  //   first  the step's first round
  absl::StatusOr<std::vector<double>> GradientRound(absl::Span<const TokenBatch> batches,
                                                    GradientAt at, bool first);
  // After the last round: the gradient is the mean over all micro-batches. Returns its norm.
  absl::StatusOr<double> FinishGradient(int64_t micro_batches);
  // Mean losses of 1 .. ranks() batches, without gradients, at the parameters.
  absl::StatusOr<std::vector<double>> Losses(absl::Span<const TokenBatch> batches);
  // These two require Parts.copy.
  absl::Status MakeLookahead(float eta) override;
  absl::Status BeginLocalSteps() override;

  // Optimizer. node_optimizer.cc.

  absl::Status TakeGradient(const v1::StepParameters& step, int index, double norm) override;
  absl::StatusOr<std::vector<SharedBytes>> Compress(RoundId round,
                                                    const v1::StepParameters& step) override;
  absl::StatusOr<std::vector<SharedBytes>> EncodePending() override;
  const std::optional<PendingRound>& pending() const override { return optimizer_->pending(); }
  void ForgetPending() override { optimizer_->ForgetPending(); }
  absl::Status ForgetState() override;
  absl::StatusOr<double> MomentumNorm() override;
  absl::Status Feedback(const CommittedRound& round, int member) override;
  // Of all ranks together; nothing also when a rank failed while it changed the rule's state.
  std::optional<DeltaReadings> delta_readings() const override;

  // What the ranks have spent in collective operations, together.
  TimeByCollective collective_time() const override { return collective_time_->spent(); }
  // Floating-point operations a second that a rank does at most, measured on the first one's
  // device: in param_dtype on a GPU, in f32 on a CPU.
  absl::StatusOr<double> PeakFlops();

  // Bytes that the ranks hold together, by category. Activations are Torch's and not counted.
  MemoryByCategory memory() const override;

  // FailedPrecondition also: a rank failed while it changed the rule's state, or a device's memory
  // cannot be read because a rank is stuck.
  absl::StatusOr<Kept> kept() const override;
  // Whatever strategy and number of ranks the earlier process had.
  absl::Status Restore(std::shared_ptr<const StateReader::Contents> contents) override;

 private:
  using RankWork = std::function<absl::Status(Rank& rank, int number)>;
  using Ranks = std::vector<std::unique_ptr<Rank>>;

  Node(const NodeOptions& options, const Parts& parts, ShardPlan shards, ShardPlan whole);
  absl::Status Start();
  // `work` is kept for a rank that gets stuck: it owns or shares whatever it uses.
  absl::Status Run(absl::string_view operation, RankWork work);
  // Work that leaves the rule's state of no use when it fails on the way.
  absl::Status RunOnState(absl::string_view operation, RankWork work);
  // What the local steps did is finite, at all ranks.
  absl::StatusOr<bool> StepsAreFinite(const v1::StepParameters& step);
  // Their norm over the whole model is at most the rule's delta_clip, as far as f32 goes.
  absl::Status ClipSteps();
  // The norm of which every rank writes the sums of its block rows.
  using SumWork = std::function<absl::Status(Rank& rank, absl::Span<double> row_sums)>;
  absl::StatusOr<double> RunForNorm(absl::string_view operation, SumWork work);
  // One batch a rank, for as many as there are; the losses.
  using BatchWork = std::function<absl::StatusOr<double>(Rank& rank, const TokenBatch* batch)>;
  absl::StatusOr<std::vector<double>> RunOnBatches(absl::string_view operation,
                                                   absl::Span<const TokenBatch> batches,
                                                   BatchWork work);
  // Of all tensors, of what the ranks hold.
  absl::StatusOr<std::vector<uint64_t>> TensorHashes() const;

  const NodeOptions options_;
  const Parts parts_;
  const std::shared_ptr<const ShardPlan> shards_;
  const std::shared_ptr<const ShardPlan> whole_;
  const std::shared_ptr<Ranks> ranks_;  // made and used on their threads
  const std::shared_ptr<CollectiveTime> collective_time_ = std::make_shared<CollectiveTime>();
  std::unique_ptr<RankThreads> threads_;
  std::shared_ptr<Optimizer> optimizer_;  // over the ranks that together hold everything once
  bool state_is_whole_ = true;
  // Of the round that was applied last, until its feedback; a rank that is stuck may look at it.
  std::shared_ptr<const DecodedRound> decoded_;
};

}  // namespace distro::worker
