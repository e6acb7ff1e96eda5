// The workload of a Python program: its module, and the description of its data.
//
// Not thread-safe: one training thread. Borrowed objects outlive it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/layout/layout.h"
#include "distro/v1/session.pb.h"
#include "worker/python/hand_over.h"
#include "worker/python/module_learner.h"
#include "worker/python/module_objective.h"
#include "worker/python/module_tensors.h"
#include "worker/train/phase_clock.h"
#include "worker/train/workload.h"

namespace distro::worker {

class ModuleWorkload final : public Workload {
 public:
  // `data_fingerprint` and `tokenizer` as in JoinRequest. `threads`, at least 1, compress and apply
  // rounds.
  ModuleWorkload(ModuleTensors* module, std::string data_fingerprint, std::string tokenizer,
                 HandOver* program, PhaseClock* phases, int threads)
      : module_(module),
        data_fingerprint_(std::move(data_fingerprint)),
        tokenizer_(std::move(tokenizer)),
        program_(program),
        phases_(phases),
        threads_(threads) {}

  void Describe(v1::JoinRequest* request) const override;
  // InvalidArgument: the module differs from the run's model; names the first tensor, if known.
  // FailedPrecondition with reason `other_data`: the run uses local data, or pins a tokenizer and
  // the program named none.
  absl::Status Build(const v1::JoinResponse& run) override;

  const Layout& layout() const override { return *layout_; }
  ModuleLearner* learner() override { return learner_.get(); }
  Objective* objective() override { return objective_.get(); }
  int micro_batch_samples() const override { return 1; }

  // These require Build. For each tensor, whether Muon steps it; false for all with signs.
  const std::vector<bool>& by_muon() const { return by_muon_; }
  const UpdateRuleKind& rule() const { return learner_->rule(); }

 private:
  absl::Status CheckTensors(const v1::JoinResponse& run) const;

  ModuleTensors* const module_;
  const std::string data_fingerprint_;
  const std::string tokenizer_;
  HandOver* const program_;
  PhaseClock* const phases_;
  const int threads_;
  std::unique_ptr<Layout> layout_;
  std::vector<bool> by_muon_;
  std::unique_ptr<ModuleLearner> learner_;
  std::unique_ptr<ModuleObjective> objective_;
};

}  // namespace distro::worker
