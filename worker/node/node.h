// A worker's node: the model on R ranks (docs/fsdp.md), one or more. The training thread calls the
// operations of a round; the node runs each on all ranks' threads and waits for them. Results are
// independent of sharding: parameters, state hash and, with equal states, payloads have the same
// bits for every strategy and R.
//
// A rank that fails ends the node: the other ranks return, and the status, with reason
// `rank_failed`, names rank and operation. Every later call that needs the ranks returns it again.
// The functions below say which state remains valid.
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
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"
#include "worker/fsdp/collective_time.h"
#include "worker/model/model.h"
#include "worker/node/learner.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/node_options.h"
#include "worker/plan/shard_plan.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

class NodeDevices;
class Rank;
class RankThreads;

class Node final : public Learner {
 public:
  struct Dependencies {
    const Layout* layout = nullptr;
    const Model* model = nullptr;
    // The update rule of the worker.
    const UpdateRuleKind* rule = &kSignMomentum;
    // Whether to allocate a copy of the parameters, for overlap or local steps.
    bool copy = false;
    // For the memory plan: samples and positions of a micro-batch, K. On GPUs smaller batches of
    // tokens are padded to such a micro-batch.
    int micro_batch_samples = 1;
    int sequence_length = 1;
    int kept_per_block = 0;
    // Optional. Receives the plan.
    Log* log = nullptr;
    // Optional. Defaults to the devices of NodeOptions.
    std::shared_ptr<const NodeDevices> devices = nullptr;
  };

  // Plans the memory, then starts the ranks; parameters and the rule's state are 0. Layout and
  // model must outlive the node and any stuck rank. InvalidArgument names the option.
  // ResourceExhausted with reason `does_not_fit`: the plan needs more memory than available; names
  // options that would fit. FailedPrecondition: there is no GPU.
  static absl::StatusOr<std::unique_ptr<Node>> Create(const NodeOptions& options,
                                                      const Dependencies& deps);
  ~Node() override;

  // The number of ranks that Create would make, and its errors about devices and ranks, without
  // other inputs. InvalidArgument names the flag.
  static absl::StatusOr<int> CheckDevices(const NodeOptions& options);

  // The resident memory that the process may use with a node; it uses `held` without one. With
  // ranks on CPUs: the limit of the machine or the control group, or `held` plus memory_limit_bytes
  // per rank. No limit with GPUs, which report themselves when their memory is full.
  static int64_t HostMemoryFor(const NodeOptions& options, int ranks, int64_t held);

  // Whether a rank did not return in time. It may return at any time, even after this object is
  // destroyed, with which it shares ownership of what it uses; layout and model must stay alive.
  bool has_stuck_rank() const;

  int ranks() const;

  // Parameters. node_rounds.cc.

  absl::Status Load(const std::string& snapshot_path, RoundId next_round,
                    uint64_t log_hash) override;
  absl::StatusOr<HostTensors> parameters() const override;

  // Gradient. One round of micro-batches, 1 .. ranks() of them: rank r computes the r-th. Returns
  // their mean losses.
  //
  //   first  the step's first round
  absl::StatusOr<std::vector<double>> GradientRound(absl::Span<const TokenBatch> batches,
                                                    GradientAt at, bool first);
  // After the last round: the gradient is the mean over all micro-batches. Returns its norm. With
  // local steps, TakeStep comes before another gradient at the copy, or not at all: the ranks
  // then exchange their runs of the copy again.
  absl::StatusOr<double> FinishGradient(int64_t micro_batches);
  // Mean losses of 1 .. ranks() batches, without gradients, at the parameters.
  absl::StatusOr<std::vector<double>> Losses(absl::Span<const TokenBatch> batches);
  // Logits of the next token, f32 [vocab_size], at the parameters, computed by the first rank.
  // Requires 1 .. max_positions tokens of the vocabulary.
  absl::StatusOr<std::vector<float>> NextLogits(absl::Span<const int32_t> tokens);
  // These two require a node with a copy.
  absl::Status MakeLookahead(float eta) override;
  absl::Status BeginLocalSteps() override;

  // The ranks' total time in collective operations.
  TimeByCollective collective_time() const override { return collective_time_->spent(); }
  // Peak floating-point operations per second of a rank, measured on the first rank's device: in
  // param_dtype on a GPU, in f32 on a CPU.
  absl::StatusOr<double> PeakFlops();

  // Total bytes of the ranks by category. Activations, which Torch allocates, are not counted.
  MemoryByCategory memory() const override;

  // FailedPrecondition also: a device's memory cannot be read because a rank is stuck.
  absl::StatusOr<Kept> kept() const override;

 private:
  using RankWork = std::function<absl::Status(Rank& rank, int number)>;
  using Ranks = std::vector<std::unique_ptr<Rank>>;

  Node(const NodeOptions& options, const Dependencies& deps, ShardPlan shards, ShardPlan whole);
  absl::Status Start();
  // `work` may outlive the call if a rank gets stuck: it owns or shares everything that it uses.
  absl::Status Run(absl::string_view operation, RankWork work);
  absl::Status RunOnShards(absl::string_view operation, ShardWork work) override;
  absl::StatusOr<std::vector<uint64_t>> Update(
      const v1::StepParameters& step, std::shared_ptr<const DecodedRound> decoded) override;
  // Runs one batch per rank, as far as there are batches; returns the losses.
  using BatchWork = std::function<absl::StatusOr<double>(Rank& rank, const TokenBatch* batch)>;
  absl::StatusOr<std::vector<double>> RunOnBatches(absl::string_view operation,
                                                   absl::Span<const TokenBatch> batches,
                                                   BatchWork work);
  // The hashes of all tensors from the ranks' parts.
  absl::StatusOr<std::vector<uint64_t>> TensorHashes() const;

  const NodeOptions options_;
  const Dependencies deps_;
  const std::shared_ptr<const ShardPlan> shards_;
  const std::shared_ptr<const ShardPlan> whole_;
  std::unique_ptr<RankThreads> threads_;  // owns the communicators, which outlive the ranks
  const std::shared_ptr<Ranks> ranks_;    // made and used on their threads
  const std::shared_ptr<CollectiveTime> collective_time_ = std::make_shared<CollectiveTime>();
};

}  // namespace distro::worker
