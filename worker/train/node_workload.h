// The workload of distro-worker: tokens, and a model of common/model on the ranks of a node.
//
// Not thread-safe: one training thread. Borrowed objects outlive it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/model/layout/layout.h"
#include "distro/v1/session.pb.h"
#include "worker/data/token_file.h"
#include "worker/model/model.h"
#include "worker/node/node.h"
#include "worker/train/node_objective.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"
#include "worker/train/trainer.h"
#include "worker/train/workload.h"

namespace distro::worker {

class NodeWorkload final : public Workload {
 public:
  struct Dependencies {
    const TokenSource* tokens;
    // The public text of a run with local data, in which `tokens` are this worker's own.
    const TokenSource* public_tokens = nullptr;
    // TokenSource::Fingerprint of the text that all workers have.
    std::string data_fingerprint;
    // Name of the expected run; empty: any.
    std::string run_name = "";
    PhaseClock* phases;
    Log* log;
  };

  NodeWorkload(const TrainerOptions& options, Dependencies deps)
      : options_(options), deps_(std::move(deps)) {}
  // Does not free layout and model if a rank is stuck, since it may still use them.
  ~NodeWorkload() override;

  void Describe(v1::JoinRequest* request) const override;
  // Also FailedPrecondition with reason `other_run`: the run is not the expected one, or accepts
  // only Python workers.
  absl::Status Build(const v1::JoinResponse& run, const Companions& companions) override;

  const Layout& layout() const override { return *layout_; }
  Learner* learner() override { return node_.get(); }
  Objective* objective() override { return objective_.get(); }
  int micro_batch_samples() const override { return micro_batch_samples_; }

  // These require Build.
  const Node& node() const { return *node_; }
  Node* mutable_node() { return node_.get(); }
  int vocab_size() const { return model_->architecture().sizes().vocab_size; }
  // Node::PeakFlops.
  absl::StatusOr<double> PeakFlops() { return node_->PeakFlops(); }

 private:
  absl::Status CheckRun(const v1::RunConfig& config) const;
  absl::Status OpenSamples(const v1::RunConfig& config, int vocab_size);
  absl::Status MakeNode(const v1::RunConfig& config);

  const TrainerOptions options_;
  const Dependencies deps_;

  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SampleReader> samples_;
  std::unique_ptr<SampleReader> public_samples_;  // with local data
  UpdateRuleKind rule_ = {};
  std::unique_ptr<Node> node_;
  int micro_batch_samples_ = 0;  // of it
  std::unique_ptr<NodeObjective> objective_;
};

}  // namespace distro::worker
