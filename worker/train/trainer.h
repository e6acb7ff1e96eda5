// The training loop of one worker (docs/algorithm.md, "A worker's step"; docs/worker.md): computes
// gradients, sends updates through the exchange, applies committed rounds to the replica.
// step_plan.h decides the order of these actions.
//
// Not thread-safe: one training thread. Borrowed objects outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/client/exchange/exchange.h"
#include "common/feed/round_assembler.h"
#include "common/method/methods.h"
#include "common/model/checkpoint/companions.h"
#include "distro/v1/session.pb.h"
#include "worker/node/learner.h"
#include "worker/plan/node_options.h"
#include "worker/state/state_dir.h"
#include "worker/train/gradient_step.h"
#include "worker/train/objective.h"
#include "worker/train/open_round.h"
#include "worker/train/own_rounds.h"
#include "worker/train/own_update.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"
#include "worker/train/step_plan.h"
#include "worker/train/summary.h"

namespace distro::worker {

struct TrainerOptions {
  std::string worker;
  uint64_t incarnation = 0;
  // Samples of one forward and backward pass of one rank. Larger values are faster and cost
  // activation memory; the samples read do not depend on it. Must divide the run's
  // samples_per_worker; 0: all of them at once. TrainingRun also accepts kAutoMicroBatch: the
  // largest that fits.
  int micro_batch_samples = 0;
  // Time added to every gradient, to simulate slower workers in tests.
  absl::Duration hold_back = absl::ZeroDuration();
  // Every round starts without state of earlier rounds, and none is saved. Only with
  // a rule that takes local steps.
  bool stateless = false;
  // The worker leaves after this many of its updates were committed or excluded; 0: when the run is
  // done.
  uint64_t updates = 0;
  // How the node's ranks share the model and the samples.
  NodeOptions node = {};
  // Folder to which the model is written at the end, in the Hugging Face layout; empty: none.
  std::string checkpoint_dir;
  // Write it also every this many rounds, to checkpoint_dir/round-<n>; 0: only at the end.
  uint64_t checkpoint_interval_rounds = 0;
  // Newest folders round-<n> to keep; 0: all.
  int keep = 3;
  // Save the worker's state after every this many uploads; 0: only at the end.
  uint64_t state_interval_rounds = 0;
};

// A worker whose steps were not finite in this many rounds in a row ends: it contributes nothing.
inline constexpr uint64_t kMostAbstentions = 20;
// Of a worker whose last `rounds` rounds had no finite step: FailedPrecondition with reason
// `not_finite`, or OK if there were none.
absl::Status NoFiniteStep(uint64_t rounds);

// Whether a status of the exchange says that the aggregator's log does not continue the parameters.
bool NeedsResync(const absl::Status& status);

class Trainer {
 public:
  struct Dependencies {
    const v1::JoinResponse* run;
    Learner* learner;
    Objective* objective;
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
    // Optional. Stores the worker's state.
    StateDir* state = nullptr;
    // Written beside every checkpoint.
    const Companions* companions = nullptr;
    // Joins again and loads the snapshot into the learner.
    std::function<absl::Status()> resync = nullptr;
    // Optional. Called once, with the run's newest parameters; no round waits for this worker
    // before it returns.
    std::function<absl::Status()> ready = nullptr;
  };
  // Called after every applied round and at the end, with the readings so far.
  using Observer = std::function<void(const TrainSummary&)>;

  // InvalidArgument: micro_batch_samples does not divide samples_per_worker; stateless with a rule
  // that takes no local steps.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(TrainerOptions options, Dependencies deps,
                                                         Observer observer);

  // Continues from an earlier process's state, which the learner has restored.
  void Resume(const WorkerState& state);

  // Evaluates, follows the run and trains until it is done; then writes the checkpoint and
  // evaluates again. If the log does not continue the parameters, it resyncs from a snapshot and
  // keeps the rule's state. Returns the final status of the exchange; `diverged` or `pruned`: a
  // resync did not help. Cancelled: the exchange was stopped; a running evaluation or gradient is
  // cancelled at its next micro-batch. InvalidArgument: the aggregator announced samples that the
  // run does not allow. FailedPrecondition with reason `not_finite`: no step was finite in
  // kMostAbstentions rounds in a row, or in any round until the end. The checkpoint's own status,
  // if the last one cannot be written; that another one cannot, or the state, is logged and
  // counted.
  absl::Status Run();

  // Saves the worker's state, if configured; logs and counts a failure.
  void SaveState();

  const TrainSummary& summary() const { return summary_; }

 private:
  Trainer(TrainerOptions options, Dependencies deps, Observer observer);

  // The loop.
  absl::Status FollowRun();
  // Applies the rounds that were committed until Join, and those that have arrived since.
  absl::Status CatchUp();
  // Whether the run, or the configured number of updates, is done.
  bool HasDone() const;
  bool ResyncMayHelp() const;
  absl::Status Resync(const absl::Status& why);
  // Cancelled once the exchange was stopped.
  absl::Status CheckGoesOn() const;
  StepState State() const;
  absl::Status Step();
  absl::Status TakeEvent();
  absl::Status ComputeGradient();
  absl::Status ComputeLookaheadGradient();
  // Keeps it for the upload, with its readings in the summary.
  absl::Status KeepGradient(const v1::Slot& slot, const absl::StatusOr<Gradient>& gradient);
  absl::Status Evaluate();
  absl::StatusOr<double> LossOf(HeldOutText which);
  void Observe();

  // Files.
  absl::Status WriteLastCheckpoint();
  void WriteRoundCheckpoint();
  void Wrote(const absl::Status& status, const std::string& dir);
  absl::Status WriteState();

  // The events of a round: it opens, gets this worker's update, is committed and applied.
  absl::Status Open(OpenedRound opened);
  // InvalidArgument: the rule does not accept the step of a round.
  absl::Status CheckStep(RoundId round, const v1::StepParameters& step) const;
  // A restarted aggregator announced the round again, with another slot: discards the work on the
  // old slot.
  absl::Status ChangeSlot();
  // The status of NoFiniteStep: it has abstained from too many rounds in a row.
  absl::Status Upload();
  // The payloads of the open round's update; none if it is not finite.
  absl::StatusOr<std::vector<SharedBytes>> Compress();
  // Whether local steps of the open round were taken but not sent; the inner optimizer has already
  // advanced.
  bool HasLocalSteps() const;
  // Makes them the pending update, so that a later process sends it.
  absl::Status KeepLocalSteps();
  // The open round closed before the outcome of the local steps was sent: adds it to the rule's
  // state, before any later result.
  absl::Status DropLateSteps();
  void OfferPending();
  // Sends an update, or an abstention, for the open round: sets what its header says of steps and
  // samples, and the state's hash.
  void HandIn(RoundUpdate update, int local_steps, uint64_t first_sample);
  absl::Status Apply(const CommittedRound& round);
  // Takes the number of rounds that a record or Join states; 0: none is stated.
  void TakeExtension(uint64_t rounds);
  absl::Status AfterRound();
  // What became of this worker's part in a round.
  void CountOwnUpdate(const CommittedRound& round, int member);
  void TellOwnPart(OwnPart part);

  const UpdateRuleKind& rule() const { return deps_.learner->rule(); }
  bool binds_updates_to_slots() const { return MethodOf(config_).binds_updates_to_slots(); }

  const TrainerOptions options_;
  const Dependencies deps_;
  const Observer observer_;
  const v1::RunConfig config_;  // a copy: a resync replaces what `deps_.run` holds
  uint64_t rounds_;             // of the run, as far as the log has come

  OpenRound open_;
  OwnUpdate own_;
  OwnRounds own_rounds_;
  GradientStep gradient_step_;
  std::optional<Gradient> gradient_;
  uint64_t gradient_samples_ = 0;  // first sample of the slot of `gradient_`
  EpochId epoch_;                  // the highest seen
  bool ready_;                     // rounds may wait for this worker
  std::optional<RoundId> resynced_at_;
  uint64_t rounds_since_resync_ = 0;
  uint64_t abstentions_in_a_row_ = 0;
  TrainSummary summary_;
};

}  // namespace distro::worker
