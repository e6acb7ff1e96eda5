// The training loop of one worker (docs/algorithm.md, "A worker's step"; docs/worker.md): gradients from samples, updates to the
// exchange, committed rounds into the replica. Which of these comes next is decided by step_plan.h.
//
// Not thread-safe: one training thread. What it borrows outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/layout/tensor_buffer.h"
#include "common/replica/replica.h"
#include "common/replica/round_assembler.h"
#include "distro/v1/session.pb.h"
#include "worker/exchange/exchange.h"
#include "worker/model/model.h"
#include "worker/optimizer/optimizer.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"
#include "worker/train/step_plan.h"
#include "worker/train/summary.h"

namespace distro::worker {

struct TrainerOptions {
  std::string worker;
  uint64_t incarnation = 0;
  // Samples of one forward and backward pass. Larger values are faster and cost activation memory; the samples that are
  // read do not depend on it. Must divide the run's samples_per_worker; 0: all of them at once.
  int micro_batch_samples = 0;
  // Folder that receives the model in the Hugging Face layout at the end; empty: none.
  std::string checkpoint_dir;
  // Also every so many rounds, into checkpoint_dir/round-<n>; 0: only at the end.
  uint64_t checkpoint_interval_rounds = 0;
};

class Trainer {
 public:
  struct Parts {
    const v1::JoinResponse* run;
    const Model* model;
    const SampleReader* samples;
    Replica* replica;
    Optimizer* optimizer;
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
  };
  // Called after every applied round and at the end, with the readings so far.
  using Observer = std::function<void(const TrainSummary&)>;

  // InvalidArgument: micro_batch_samples does not divide samples_per_worker.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(TrainerOptions options, Parts parts,
                                                         Observer observer);

  // Evaluates, follows the run and trains until it is done; then writes the checkpoint and evaluates again. Otherwise the
  // status with which the exchange ended it. Cancelled: the exchange was stopped; an evaluation or a gradient that goes on
  // is dropped at its next micro-batch. InvalidArgument: the aggregator announced samples that the run does not allow.
  absl::Status Run();

  const TrainSummary& summary() const { return summary_; }

 private:
  // A gradient that no upload has used yet; the buffer holds it when it is finite.
  struct Gradient {
    double loss = 0;
    double norm = 0;
    bool finite = true;
  };

  Trainer(TrainerOptions options, Parts parts, Observer observer);

  absl::Status Follow();
  // Cancelled once the exchange was stopped.
  absl::Status CheckGoesOn() const;
  StepState State() const;
  absl::Status Step();
  absl::Status TakeEvent();
  absl::Status Open(OpenedRound opened);
  absl::Status CheckSlot(const v1::Slot& slot) const;
  absl::Status Apply(const CommittedRound& round);
  void CountOwnUpdate(const CommittedRound& round, int member);
  absl::Status ComputeGradient(const std::optional<v1::Slot>& slot, const TensorBuffer& parameters);
  absl::Status AccumulateGradient(const v1::Slot& slot, const TensorBuffer& parameters,
                                  Gradient* gradient);
  absl::Status ComputeLookaheadGradient();
  void Upload();
  absl::Status Evaluate();
  absl::Status WriteCheckpoint(const std::string& dir);
  absl::Status AfterRound();
  void Observe();

  const TrainerOptions options_;
  const Parts parts_;
  const Observer observer_;
  const v1::RunConfig& config_;

  // The round that is open, as announced; kept until its commit.
  std::optional<v1::RoundOpen> open_;
  RoundId open_round_;
  std::optional<RoundId>
      uploaded_round_;                 // the last that was answered, by an update or an abstention
  std::optional<RoundId> sent_round_;  // the last that was answered by an update
  std::optional<Gradient> gradient_;
  TensorBuffer gradient_buffer_;
  std::optional<TensorBuffer> lookahead_;  // with overlap
  TrainSummary summary_;
};

}  // namespace distro::worker
