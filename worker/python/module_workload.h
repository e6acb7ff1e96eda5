// The workload of a Python program: its module, and the description of its data.
//
// Not thread-safe: one training thread. Borrowed objects outlive it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/model/layout/layout.h"
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
  struct Options {
    std::string run_name = {};                          // of an invite; empty: any
    std::string data_fingerprint = {}, tokenizer = {};  // as in JoinRequest
    int threads = 1;  // at least 1; they compress and apply rounds
  };
  ModuleWorkload(Options options, ModuleTensors* module, HandOver* program, PhaseClock* phases)
      : options_(std::move(options)), module_(module), program_(program), phases_(phases) {}

  void Describe(v1::JoinRequest* request) const override;
  // FailedPrecondition with reason `other_model`: the module has other tensors than the run; names
  // them, if the run's are known. With reason `other_data`: the run uses local data, or pins a
  // tokenizer and the program named none; with reason `other_run`: CheckInvitedRun.
  absl::Status Build(const v1::JoinResponse& run, const Companions& companions) override;

  const Layout& layout() const override { return *layout_; }
  ModuleLearner* learner() override { return learner_.get(); }
  ModuleObjective* objective() override { return objective_.get(); }
  int micro_batch_samples() const override { return 1; }

  // Requires Build.
  const UpdateRuleKind& rule() const { return learner_->rule(); }

 private:
  absl::Status CheckTensors(const v1::JoinResponse& run, const Companions& companions) const;

  const Options options_;
  ModuleTensors* const module_;
  HandOver* const program_;
  PhaseClock* const phases_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<ModuleLearner> learner_;
  std::unique_ptr<ModuleObjective> objective_;
};

}  // namespace distro::worker
