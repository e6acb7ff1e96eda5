// Adds the gradients of units to a rank's f32 sums: by a reduce-scatter of the unit's flat after
// every round of micro-batches, or accumulated locally and reduced once per step. At most one
// reduction runs at a time, in parallel with the backward pass of the next unit. One object per
// rank; not thread-safe. Throws Torch's exceptions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/fsdp/communicator.h"
#include "worker/model/gradient.h"
#include "worker/model/model.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

class GradientReducer {
 public:
  // As GatheredUnits.
  GradientReducer(const FsdpOptions& options, const Model& model, const ShardPlan& shards,
                  const ShardPlan& whole, Communicator* communicator, MemoryCounter* memory);
  ~GradientReducer();

  // Starts a round of micro-batches. `has_part`: this rank computes one.
  void Begin(bool has_part, Accumulation accumulation, const at::Tensor& gradient);
  // Adds the complete gradients of the tensors that the unit owns: all of them, or none if this
  // rank has no part.
  absl::Status Take(int unit, std::vector<TensorGradient> gradients);
  // Ends the round: all gradients passed to Take are in `gradient`.
  absl::Status End();
  // The step is over (UnitDriver::FinishGradient).
  absl::Status FinishStep(const at::Tensor& gradient);

 private:
  void AddAtHome(int unit, const std::vector<TensorGradient>& gradients);
  at::Tensor FlatOf(int unit, std::vector<TensorGradient> gradients);
  absl::Status Reduce(int unit, const at::Tensor& part, Accumulation accumulation,
                      int64_t counted_bytes);
  at::Tensor Whole(int unit) const;
  at::Tensor OwnSum(int unit) const;
  bool AtHome() const;

  const FsdpOptions options_;
  const Model& model_;
  const ShardPlan& shards_;
  const ShardPlan& whole_;
  Communicator* const communicator_;
  MemoryCounter* const memory_;
  const bool sharded_;

  bool has_part_ = false;
  Accumulation accumulation_ = Accumulation::kStore;
  at::Tensor gradient_;
  struct UnderWay {
    Transfer transfer;
    at::Tensor part;
    int64_t counted_bytes = 0;
  };
  std::optional<UnderWay> under_way_;
};

}  // namespace distro::worker
