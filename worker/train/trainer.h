// The training loop of one worker (docs/algorithm.md, "A worker's step"; docs/worker.md): gradients
// from samples, updates to the exchange, committed rounds into the replica. Which of these comes
// next is decided by step_plan.h.
//
// Not thread-safe: one training thread. What it borrows outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/exchange/exchange.h"
#include "common/round_log/round_assembler.h"
#include "distro/v1/session.pb.h"
#include "worker/node/learner.h"
#include "worker/plan/node_options.h"
#include "worker/state/state_dir.h"
#include "worker/train/gradient_step.h"
#include "worker/train/objective.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"
#include "worker/train/step_plan.h"
#include "worker/train/summary.h"

namespace distro::worker {

struct TrainerOptions {
  std::string worker;
  uint64_t incarnation = 0;
  // Samples of one forward and backward pass of one rank. Larger values are faster and cost
  // activation memory; the samples that are read do not depend on it. Must divide the run's
  // samples_per_worker; 0: all of them at once; for TrainingRun kAutoMicroBatch: the largest that
  // fits.
  int micro_batch_samples = 0;
  // Time by which every gradient takes longer: tests make workers of different speeds with it.
  absl::Duration hold_back = absl::ZeroDuration();
  // Every round begins without state of the rounds before it, and none is kept. Deltas only.
  bool stateless = false;
  // The worker leaves when so many of its updates are in the log, or were left out of it; 0: when
  // the run is done.
  uint64_t updates = 0;
  // How the node's ranks share the model and the samples.
  NodeOptions node = {};
  // Folder that receives the model in the Hugging Face layout at the end; empty: none.
  std::string checkpoint_dir;
  // Also every so many rounds, into checkpoint_dir/round-<n>; 0: only at the end.
  uint64_t checkpoint_interval_rounds = 0;
  // Own state is saved after every so many of the rounds' uploads; 0: only at the end.
  uint64_t state_interval_rounds = 0;
};

class Trainer {
 public:
  struct Parts {
    const v1::JoinResponse* run;
    Learner* learner;
    Objective* objective;
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
    // Keeps the worker's own state; nullptr: nothing is kept.
    StateDir* state = nullptr;
    // Joins again and loads the snapshot into the learner.
    std::function<absl::Status()> resync = nullptr;
  };
  // Called after every applied round and at the end, with the readings so far.
  using Observer = std::function<void(const TrainSummary&)>;

  // InvalidArgument: micro_batch_samples does not divide samples_per_worker; stateless with signs.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(TrainerOptions options, Parts parts,
                                                         Observer observer);

  // Goes on where an earlier process was, whose state the learner has restored.
  void Resume(const WorkerState& state);

  // Evaluates, follows the run and trains until it is done; then writes the checkpoint and
  // evaluates again. When the log does not continue the parameters it takes a snapshot and the log
  // again; the momentum stays. Otherwise the status with which the exchange ended it; `diverged` or
  // `pruned`: a resync did not help. Cancelled: the exchange was stopped; an evaluation or a
  // gradient that goes on is dropped at its next micro-batch. InvalidArgument: the aggregator
  // announced samples that the run does not allow.
  absl::Status Run();

  // Keeps the worker's own state, if it is to be kept; a failure is logged.
  void SaveState();

  const TrainSummary& summary() const { return summary_; }

 private:
  Trainer(TrainerOptions options, Parts parts, Observer observer);

  // trainer.cc: the loop.
  absl::Status FollowRun();
  // The run is done, or as many updates are as were asked for.
  bool HasDone() const;
  bool ResyncMayHelp() const;
  absl::Status Resync(const absl::Status& why);
  // Cancelled once the exchange was stopped.
  absl::Status CheckGoesOn() const;
  StepState State() const;
  // What this worker reads for a round with these slots, in which it has one.
  v1::Slot SamplesFor(RoundId round,
                      const google::protobuf::RepeatedPtrField<v1::Slot>& slots) const;
  // Those of a slot of the open round, and behind them those announced for the next one.
  v1::Slot WithNextSamples(v1::Slot slot) const;
  absl::Status Step();
  absl::Status TakeEvent();
  absl::Status ComputeGradient();
  absl::Status ComputeLookaheadGradient();
  absl::Status TakeGradient(const v1::Slot& slot, const absl::StatusOr<Gradient>& gradient);
  absl::Status Evaluate();
  absl::StatusOr<double> LossOf(HeldOutText which);
  absl::Status WriteCheckpoint(const std::string& dir);
  void Observe();

  // trainer_rounds.cc: what happens to a round.
  absl::Status Open(OpenedRound opened);
  absl::Duration WindowEnds(const OpenedRound& opened) const;
  absl::Status CheckSlot(const v1::Slot& slot) const;
  // Local steps of an update as the header says them: where the run has a window.
  uint32_t StatedSteps(int local_steps) const {
    return config_.has_round_window() ? static_cast<uint32_t>(local_steps) : 0;
  }
  // InvalidArgument: the step of a round is of another method than the run, or of deltas with other
  // local steps or another form of its tensors' blocks.
  absl::Status CheckMethod(RoundId round, const v1::StepParameters& step) const;
  absl::Status Upload();
  // What was taken for the open round as its payloads; none: it is not finite.
  absl::StatusOr<std::vector<SharedBytes>> Compress();
  // With deltas, of samples from `first` on: as the header says it.
  uint64_t StatedSamples(uint64_t first) const {
    return config_.method() == v1::METHOD_DELTAS ? first : 0;
  }
  // The first index of this worker's slot of the open round. Requires one.
  uint64_t FirstSample() const { return FindSlot(open_->slots(), options_.worker)->first_sample(); }
  // What is pending is of this worker's slot of the open round. With local data a slot only counts
  // samples.
  bool PendingIsOfSlot() const {
    return config_.method() != v1::METHOD_DELTAS || config_.data() == v1::DATA_LOCAL ||
           pending_samples_ == FirstSample();
  }
  // The round is announced again, by an aggregator that was started again, with another slot: what
  // was done of the slot before is not of this round.
  absl::Status ChangeSlot();
  // Local steps of the open round are taken and not sent: the inner optimizer has them already.
  bool HasLocalSteps() const;
  // They become pending: a later process sends what this one would have sent.
  absl::Status KeepLocalSteps();
  // The open round closed before what local steps did was sent: it goes into the rule's state all
  // the same, before any later result.
  absl::Status DropLateSteps();
  absl::Status OfferPending();
  void HandIn(RoundUpdate update);
  absl::Status Apply(const CommittedRound& round);
  // Whether the record's member is a process that handed in what is pending.
  bool IsSender(const CommittedRound& round, int member) const;
  void CountOwnUpdate(const CommittedRound& round, int member);
  absl::Status AfterRound();

  const TrainerOptions options_;
  const Parts parts_;
  const Observer observer_;
  const v1::RunConfig config_;  // a copy: a resync replaces what `parts_.run` holds

  // The round that is open, as announced; kept until its commit.
  std::optional<v1::RoundOpen> open_;
  RoundId open_round_;
  absl::Duration window_ends_;  // of it, by the phase clock's clock; infinite without a window
  std::optional<RoundId>
      uploaded_round_;                  // the last that was answered, by an update or an abstention
  std::optional<RoundId> sent_round_;   // the last that was answered by an update; not of before a
                                        // resync
  std::optional<RoundId> last_update_;  // the same, of before it too
  std::optional<Gradient> gradient_;
  GradientStep gradient_step_;
  // Incarnations of the processes that handed in what is pending, the same bytes each: the record
  // names the one whose came first.
  std::vector<uint64_t> senders_;
  double pending_loss_ = 0;        // of the step that is pending
  int pending_steps_ = 0;          // local steps of what is pending
  uint64_t gradient_samples_ = 0;  // first index of the slot that `gradient_` is of
  uint64_t uploaded_samples_ = 0;  // of the slot that uploaded_round_ was answered for
  uint64_t pending_samples_ = 0;   // of the slot that what is pending is of
  EpochId epoch_;                  // the highest seen
  std::optional<RoundId> resynced_at_;
  uint64_t rounds_since_resync_ = 0;
  TrainSummary summary_;
};

}  // namespace distro::worker
