// The interface that the training loop drives: a replica of the run's parameters, and the worker's
// half of the optimizer over it. Two implementations: a node (node.h), which has a model of this
// project on ranks, and the tensors of a PyTorch module (worker/python/module_learner.h). The loop
// cannot tell them apart; the Objective (worker/train/objective.h) computes its gradients.
//
//   learner->Load(snapshot, round, hash);
//   learner->BeginLocalSteps();               // deltas: the copy starts at the parameters
//   learner->TakeGradient(step, 0, norm);     // of each step of the round
//   payloads = learner->Compress(round, step);
//   learner->Apply(committed);
//   learner->Feedback(committed, member);
//
// Not thread-safe: the training thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/round_log/applied_log.h"
#include "common/round_log/committed_round.h"
#include "distro/v1/round.pb.h"
#include "worker/fsdp/collective_time.h"
#include "worker/optimizer/delta_readings.h"
#include "worker/optimizer/optimizer.h"
#include "worker/plan/memory_counter.h"
#include "worker/state/state_file.h"

namespace distro::worker {

class Learner : public AppliedLog {
 public:
  virtual ~Learner() = default;

  // By which the worker learns.
  virtual const UpdateRuleKind& rule() const = 0;

  // Parameters.

  // Takes the parameters before `next_round` from a snapshot; `log_hash` as AppliedLog has it.
  // Momentum and what is pending stay. InvalidArgument: it is no snapshot of this layout; then the
  // parameters are what they were.
  virtual absl::Status Load(const std::string& snapshot_path, RoundId next_round,
                            uint64_t log_hash) = 0;
  // Statuses as AppliedLog::ApplyNext.
  virtual absl::Status Apply(const CommittedRound& round) = 0;
  // Tensors in the host's memory: where they are, valid until the next call that changes them, or
  // copies of what a device holds.
  struct HostTensors {
    TensorPieces pieces;
    std::vector<std::vector<float>> copies;
  };
  virtual absl::StatusOr<HostTensors> parameters() const = 0;
  // copy <- parameters - eta * sign(m). Requires a learner with a copy.
  virtual absl::Status MakeLookahead(float eta) = 0;
  // copy <- parameters: a round of local steps begins. As above.
  virtual absl::Status BeginLocalSteps() = 0;

  // Optimizer (docs/algorithm.md, "A worker's step"; worker/optimizer/update_rule.h).

  // The gradient of the round's step `index` into the rule; it is finite, and so is its norm.
  virtual absl::Status TakeGradient(const v1::StepParameters& step, int index, double norm) = 0;
  // What the rule took, scaled down to the rule's delta_clip, becomes an update, which is pending;
  // its payloads [segments]. None: what came of the steps is not finite, and nothing is pending.
  virtual absl::StatusOr<std::vector<SharedBytes>> Compress(RoundId round,
                                                            const v1::StepParameters& step) = 0;
  // What is pending again, the same bytes. Requires pending().
  virtual absl::StatusOr<std::vector<SharedBytes>> EncodePending() = 0;
  virtual const std::optional<PendingRound>& pending() const = 0;
  virtual void ForgetPending() = 0;
  // The rule's state and what is pending are as a worker starts. FailedPrecondition: a rule without
  // local steps.
  virtual absl::Status ForgetState() = 0;
  // The norm of the rule's first elements (the momentum) over the whole model, f64.
  virtual absl::StatusOr<double> MomentumNorm() = 0;
  // What the round took of what is pending, if that is of this round, which was applied last.
  virtual absl::Status Feedback(const CommittedRound& round, int member) = 0;
  // Of the whole model. Nothing: the rule has none, or its state is of no use.
  virtual std::optional<DeltaReadings> delta_readings() const = 0;

  // For people: what was spent in collective operations, and bytes that are held, by category.
  virtual TimeByCollective collective_time() const = 0;
  virtual MemoryByCategory memory() const = 0;

  // What WriteStateFile writes. FailedPrecondition: the rule's state is of no use, or cannot be
  // read.
  struct Kept {
    std::vector<TensorPieces> elements;
    const Optimizer* optimizer;
    std::vector<std::vector<float>> copies;  // of what a device holds
    uint64_t local_steps = 0;
  };
  virtual absl::StatusOr<Kept> kept() const = 0;
  // What belongs to it and is not in the file, is kept too, before the file is written.
  virtual absl::Status KeepMore() { return absl::OkStatus(); }
  // Goes on where an earlier process was.
  virtual absl::Status Restore(std::shared_ptr<const StateReader::Contents> contents) = 0;

 protected:
  using AppliedLog::AppliedLog;
};

}  // namespace distro::worker
