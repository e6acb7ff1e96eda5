// The interface of the training loop to a replica of the run's parameters and the worker's half of
// the optimizer. Two implementations: a node (node.h), which runs a model of this project on ranks,
// and the tensors of a PyTorch module (worker/python/module_learner.h). The Objective
// (worker/train/objective.h) computes the gradients.
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
#include "worker/plan/memory_counter.h"
#include "worker/rules/deltas/delta_readings.h"
#include "worker/rules/optimizer.h"
#include "worker/state/state_file.h"

namespace distro::worker {

class Learner : public AppliedLog {
 public:
  virtual ~Learner() = default;

  // The update rule of the worker.
  virtual const UpdateRuleKind& rule() const = 0;

  // Parameters.

  // Loads the parameters before `next_round` from a snapshot; `log_hash` as in AppliedLog. Keeps
  // the momentum and the pending update. InvalidArgument: it is not a snapshot of this layout; the
  // parameters do not change.
  virtual absl::Status Load(const std::string& snapshot_path, RoundId next_round,
                            uint64_t log_hash) = 0;
  // Statuses as AppliedLog::ApplyNext.
  virtual absl::Status Apply(const CommittedRound& round) = 0;
  // Tensors in host memory: borrowed, valid until the next call that changes them, or copies from a
  // device.
  struct HostTensors {
    TensorPieces pieces;
    std::vector<std::vector<float>> copies;
  };
  virtual absl::StatusOr<HostTensors> parameters() const = 0;
  // copy <- parameters - eta * sign(m). Requires a learner with a copy.
  virtual absl::Status MakeLookahead(float eta) = 0;
  // copy <- parameters: starts a round of local steps. Requires a learner with a copy.
  virtual absl::Status BeginLocalSteps() = 0;

  // Optimizer (docs/algorithm.md, "A worker's step"; worker/rules/update_rule.h).

  // Passes the gradient of the round's step `index` to the rule. Requires that it and its norm are
  // finite.
  virtual absl::Status TakeGradient(const v1::StepParameters& step, int index, double norm) = 0;
  // Makes the pending update from the gradients that the rule took, clipped to the rule's
  // delta_clip. Returns its payloads [segments], or none if the outcome of the steps is not finite;
  // then nothing is pending.
  virtual absl::StatusOr<std::vector<SharedBytes>> Compress(RoundId round,
                                                            const v1::StepParameters& step) = 0;
  // Encodes the pending update again, with the same bytes. Requires pending().
  virtual absl::StatusOr<std::vector<SharedBytes>> EncodePending() = 0;
  virtual const std::optional<PendingRound>& pending() const = 0;
  virtual void ForgetPending() = 0;
  // Resets the rule's state and the pending update as for a new worker. FailedPrecondition: a rule
  // without local steps.
  virtual absl::Status ForgetState() = 0;
  // The norm of the rule's first elements (the momentum) over the whole model, f64.
  virtual absl::StatusOr<double> MomentumNorm() = 0;
  // Applies error feedback for the round, which was applied last, if the pending update is of this
  // round.
  virtual absl::Status Feedback(const CommittedRound& round, int member) = 0;
  // Readings of the whole model; nullopt if the rule has none, or its state is invalid.
  virtual std::optional<DeltaReadings> delta_readings() const = 0;

  // For display: time in collective operations, and allocated bytes by category.
  virtual TimeByCollective collective_time() const = 0;
  virtual MemoryByCategory memory() const = 0;

  // The content for WriteStateFile. FailedPrecondition: the rule's state is invalid, or cannot be
  // read.
  struct Kept {
    std::vector<TensorPieces> elements;
    const Optimizer* optimizer;
    std::vector<std::vector<float>> copies;  // from a device
    uint64_t local_steps = 0;
  };
  virtual absl::StatusOr<Kept> kept() const = 0;
  // Saves further state that is not in the file. Called before the file is written.
  virtual absl::Status KeepMore() { return absl::OkStatus(); }
  // Continues from an earlier process's state.
  virtual absl::Status Restore(std::shared_ptr<const StateReader::Contents> contents) = 0;

 protected:
  using AppliedLog::AppliedLog;
};

}  // namespace distro::worker
