// A learner over the tensors of a PyTorch module (module_tensors.h). It owns the replica's
// parameters, f32 in the host's memory. The module is the worker's copy: local steps change it, and
// it is set to the parameters when a round begins. The program takes the local steps
// (module_objective.h).
//
// Not thread-safe: the training thread owns it. Borrowed objects outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/layout/tensor_buffer.h"
#include "kernels/backend.h"
#include "kernels/replica/host_update.h"
#include "worker/node/learner.h"
#include "worker/python/hand_over.h"
#include "worker/python/module_tensors.h"
#include "worker/python/thread_shards.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

class ModuleLearner final : public Learner {
 public:
  // Requires a rule whose caller takes the local steps (LocalStepsBy::kCaller), or one without
  // local steps. `layout` is of the module's manifest. Parameters and the rule's state are 0.
  // `threads`, at least 1, compress and apply rounds; results are independent of their number.
  ModuleLearner(const Layout* layout, ModuleTensors* module, UpdateRuleKind rule, HandOver* program,
                int threads);

  absl::Status Load(const std::string& snapshot_path, RoundId next_round,
                    uint64_t log_hash) override;
  absl::StatusOr<HostTensors> parameters() const override;
  absl::Status MakeLookahead(float eta) override;
  // module <- parameters. InvalidArgument, here and below: as ModuleTensors.
  absl::Status BeginLocalSteps() override;
  // The norm of the module's gradients.
  absl::StatusOr<double> GradientNorm() { return module_->GradientNorm(); }

  // The program has taken this number of local steps.
  void CountSteps(int steps);
  // The module's gradient, of a rule without local steps.
  absl::Status TakeStep(const v1::StepParameters& step, int index, double norm) override;
  absl::StatusOr<std::vector<SharedBytes>> Compress(RoundId round,
                                                    const v1::StepParameters& step) override;
  absl::Status ForgetState() override;

  MemoryByCategory memory() const override;

  // Saves the inner optimizer's state. Internal: the program failed to.
  absl::Status KeepMore() override;

 private:
  absl::Status RunOnShards(absl::string_view operation, ShardWork work) override;
  absl::StatusOr<std::vector<uint64_t>> Update(
      const v1::StepParameters& step, std::shared_ptr<const DecodedRound> decoded) override;
  absl::Status ResetInnerOptimizer();
  uint64_t local_steps() const { return holders()[0]->rule().local_steps(); }

  ModuleTensors* const module_;
  HandOver* const program_;
  const std::vector<std::unique_ptr<Backend>> backends_;  // one a thread
  const HostUpdater updater_;
  TensorBuffer parameters_;
  ThreadShards shards_;
};

}  // namespace distro::worker
