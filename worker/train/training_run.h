// Everything a worker holds of the run it joined: configuration, model, replica, optimizer, trainer. Built from what the
// exchange delivers; the same for a worker process and for a worker of a simulation in one process.
//
// Not thread-safe: one training thread, which calls SetTorchThreads first.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/layout/layout.h"
#include "common/replica/replica.h"
#include "distro/v1/session.pb.h"
#include "kernels/backend.h"
#include "worker/data/token_file.h"
#include "worker/exchange/exchange.h"
#include "worker/model/model.h"
#include "worker/optimizer/optimizer.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"
#include "worker/train/trainer.h"

namespace distro::worker {

class TrainingRun {
 public:
  // What is borrowed outlives the run.
  struct Parts {
    const TokenSource* tokens;
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
  };

  // Joins, fetches the snapshot through a file in `scratch_dir` (removed again) and builds the model. Besides the statuses of Exchange: InvalidArgument: the model is not built here, its tensors are not the
  // run's, or the data does not fit the model; the message names key or token. DataLoss: the snapshot's state hash
  // is not the announced one.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Begin(const TrainerOptions& options,
                                                            const std::string& scratch_dir,
                                                            const Parts& parts,
                                                            Trainer::Observer observer);

  // Trainer::Run.
  absl::Status Train() { return trainer_->Run(); }

  const TrainSummary& summary() const { return trainer_->summary(); }
  const v1::JoinResponse& run() const { return run_; }
  const Replica& replica() const { return *replica_; }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  TrainingRun() = default;
  absl::Status Join(const TrainerOptions& options, const Parts& parts);
  absl::Status BuildModel(const TokenSource& tokens);
  absl::Status LoadSnapshot(const std::string& scratch_dir, Exchange* exchange);

  v1::JoinResponse run_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SampleReader> samples_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace distro::worker
