// Forward and backward of one rank over the units of a model, for every sharding strategy
// (docs/fsdp.md): parameters are gathered (or copied to param_dtype) just before a unit needs them
// and freed just after, gradients are reduced as units finish. At most prefetch_units + 1 units are
// gathered at a time.
//
// One object per rank, used by that rank's thread; the calls of all ranks must match, as for a
// Communicator. Borrows its arguments.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/fsdp/communicator.h"
#include "worker/model/batch_maker.h"
#include "worker/model/model.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

class UnitDriver {
 public:
  struct Dependencies {
    const Model* model = nullptr;
    const ShardPlan* shards = nullptr;  // for all ranks
    const ShardPlan* whole = nullptr;   // of the same units for one rank
    Communicator* communicator = nullptr;
    MemoryCounter* memory = nullptr;
    bool pins_host_memory = false;  // that of the tokens
    BatchShape padded_to = {};      // as BatchMaker's
  };

  // Requires valid options, and plans of the model's units for the communicator's ranks and for 1.
  UnitDriver(const FsdpOptions& options, at::Device device, const Dependencies& deps);
  ~UnitDriver();

  // Elements of this rank's parameters and gradients, in flats with gaps (shard_plan.h): the rank's
  // shard if the strategy shards them, else the whole. ShardRun's shard_offset or whole_offset is
  // the position of a run.
  int64_t parameter_elements() const;
  int64_t gradient_elements() const;

  // One round of micro-batches: rank r computes micro-batch (round * R + r). Returns the mean loss
  // of this rank's micro-batch, or 0 without one.
  //
  //   batch         nullptr: this rank has none in this round (lower ranks have); it only takes
  //                 part in collective operations
  //   parameters    f32 [parameter_elements()] on the device, or the host with cpu_offload; gaps
  //                 are 0
  //   accumulation  kStore: the step's first round
  //   gradient      f32 [gradient_elements()] on the device  out; sums over micro-batches, not
  //                 means. Valid after FinishGradient
  absl::StatusOr<double> Gradient(const TokenBatch* batch, const at::Tensor& parameters,
                                  Accumulation accumulation, const at::Tensor& gradient);

  // Call after the last round: completes the reductions. Then `gradient` has the sums over all
  // micro-batches of all ranks: for everything with no_shard, else for this rank's runs (with
  // shard_optimizer the rest is undefined).
  absl::Status FinishGradient(const at::Tensor& gradient);

  // The mean loss of this rank's sequences, without gradients; nullptr: takes part, returns 0.
  absl::StatusOr<double> Loss(const TokenBatch* batch, const at::Tensor& parameters);

  // Logits of the token after a sequence, without gradients, f32 [vocab_size]; nullptr: takes part,
  // returns none. Requires one sequence.
  absl::StatusOr<std::vector<float>> NextLogits(const TokenBatch* batch,
                                                const at::Tensor& parameters);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace distro::worker
