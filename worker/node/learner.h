// A replica of the run's parameters and the worker's half of the optimizer, as the training loop
// uses them. The update rule works on shards, all at the same time. Two implementations decide
// where: a node (node.h), which runs a model of this project on ranks, and the tensors of a PyTorch
// module on threads (worker/python/module_learner.h). The Objective (worker/train/objective.h)
// computes the gradients.
//
//   learner->Load(snapshot, round, hash);
//   learner->BeginLocalSteps();               // deltas: the copy starts at the parameters
//   learner->TakeStep(step, 0, norm);         // for each step of the round
//   payloads = learner->Compress(round, step);
//   learner->Apply(committed);
//   learner->Feedback(committed, member);
//
// Updates, feedback and saved state are independent of the number of shards. Not thread-safe: the
// training thread owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/methods.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/record/applied_log.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"
#include "worker/fsdp/collective_time.h"
#include "worker/plan/memory_counter.h"
#include "worker/rules/deltas/delta_readings.h"
#include "worker/rules/optimizer.h"
#include "worker/rules/shard_rule.h"
#include "worker/rules/update_rule.h"
#include "worker/state/state_file.h"

namespace distro::worker {

class Learner : public AppliedLog {
 public:
  virtual ~Learner() = default;

  // The update rule of the worker.
  const UpdateRuleKind& rule() const { return kind_; }

  // Parameters.

  // Loads the parameters before `next_round` from a snapshot; `log_hash` as in AppliedLog. Keeps
  // the rule's state and the pending update. InvalidArgument: it is not a snapshot of this layout;
  // the parameters do not change.
  virtual absl::Status Load(const std::string& snapshot_path, RoundId next_round,
                            uint64_t log_hash) = 0;
  // Statuses as AppliedLog::ApplyNext.
  absl::Status Apply(const CommittedRound& round);
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

  // Takes the round's step `index` by the gradient (UpdateRule::TakeStep). Requires that it and its
  // norm are finite.
  virtual absl::Status TakeStep(const v1::StepParameters& step, int index, double norm);
  // Makes the pending update from the gradients that the rule took, clipped to the rule's
  // delta_clip. Returns its payloads [segments], or none if the outcome of the steps is not finite;
  // then nothing is pending.
  virtual absl::StatusOr<std::vector<SharedBytes>> Compress(RoundId round,
                                                            const v1::StepParameters& step);
  // Encodes the pending update again, with the same bytes. Requires pending().
  std::vector<SharedBytes> EncodePending() const { return optimizer_->Encode(threads_); }
  const std::optional<PendingRound>& pending() const { return optimizer_->pending(); }
  void ForgetPending() { optimizer_->ForgetPending(); }
  // Resets the rule's state and the pending update as for a new worker. FailedPrecondition: a rule
  // without local steps.
  virtual absl::Status ForgetState();
  // The norm of the rule's first elements (the momentum) over the whole model, f64.
  absl::StatusOr<double> MomentumNorm();
  // Applies error feedback for the round, which was applied last, if the pending update is of this
  // round.
  absl::Status Feedback(const CommittedRound& round, int member);
  // Readings of the whole model; nullopt if the rule has none, or its state is invalid.
  std::optional<DeltaReadings> delta_readings() const;

  // For display: time in collective operations, and allocated bytes by category.
  virtual TimeByCollective collective_time() const { return {}; }
  virtual MemoryByCategory memory() const = 0;

  // The content for WriteStateFile. FailedPrecondition: the rule's state is invalid, or cannot be
  // read.
  struct Kept {
    std::vector<TensorPieces> elements;
    const Optimizer* optimizer;
    std::vector<std::vector<float>> copies;  // from a device
    uint64_t local_steps = 0;
  };
  virtual absl::StatusOr<Kept> kept() const;
  // Saves further state that is not in the file. Called before the file is written.
  virtual absl::Status KeepMore() { return absl::OkStatus(); }
  // Continues from an earlier process's state, for any number of shards of that process.
  absl::Status Restore(std::shared_ptr<const StateReader::Contents> contents);

 protected:
  // `layout` is borrowed. `threads`, at least 1, encode updates and decode results; nothing else
  // runs meanwhile.
  Learner(const Layout* layout, UpdateRuleKind kind, int threads)
      : AppliedLog(layout), kind_(std::move(kind)), threads_(threads) {}

  // Before any operation of the optimizer: the shards, of rules of rule(). The first `holders` of
  // them have every block once; further ones have copies. Borrowed.
  void SetShards(const std::vector<ShardRule*>& shards, size_t holders);

  // Runs work on every shard, each on its own thread, and waits. A shard may get stuck and `work`
  // outlive the call: it owns or shares everything that it uses, but for the shards.
  using ShardWork = std::function<absl::Status(ShardRule& shard, int number)>;
  virtual absl::Status RunOnShards(absl::string_view operation, ShardWork work) = 0;
  // The norm computed from the sums of all block rows of the model, which `work` writes.
  using SumWork =
      std::function<absl::Status(ShardRule& shard, int number, absl::Span<double> row_sums)>;
  absl::StatusOr<double> NormOverShards(absl::string_view operation, SumWork work);
  // Applies the decoded round to the parameters; returns the tensors' hashes.
  virtual absl::StatusOr<std::vector<uint64_t>> Update(
      const v1::StepParameters& step, std::shared_ptr<const DecodedRound> decoded) = 0;

  absl::Span<ShardRule* const> holders() const { return absl::MakeSpan(shards_).first(holders_); }
  int threads() const { return threads_; }

 private:
  // Runs work that, if it fails, leaves the rule's state invalid.
  absl::Status RunOnState(absl::string_view operation, ShardWork work);
  // Whether the outcome of the local steps is finite in all shards.
  absl::StatusOr<bool> StepsAreFinite(const v1::StepParameters& step);
  // Scales the steps so that their norm over the whole model is at most the rule's delta_clip,
  // within f32 precision.
  absl::Status ClipSteps();

  const UpdateRuleKind kind_;
  const int threads_;
  std::vector<ShardRule*> shards_;
  size_t holders_ = 0;
  std::optional<Optimizer> optimizer_;  // over the holders, since SetShards
  bool state_is_whole_ = true;
  // The results of the last applied round, until its feedback; a stuck shard may access them.
  std::shared_ptr<const DecodedRound> decoded_;
};

}  // namespace distro::worker
