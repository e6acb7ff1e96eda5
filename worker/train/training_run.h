// Joins a run and trains: owns the configuration and the trainer, and builds the workload from the
// exchange's data. Used by worker processes, workers of a simulation in one process, and Python
// programs.
//
//   DISTRO_ASSIGN_OR_RETURN(auto run, TrainingRun::Begin(options, workload, ...));
//   return run->Train();
//
// Not thread-safe: one training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/client/exchange/exchange.h"
#include "distro/v1/session.pb.h"
#include "worker/state/state_dir.h"
#include "worker/train/phase_clock.h"
#include "worker/train/trainer.h"
#include "worker/train/workload.h"

namespace distro::worker {

class TrainingRun {
 public:
  // Borrowed objects outlive the run.
  struct Dependencies {
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
    // Optional. Stores the worker's state; without it the rule's state starts at 0.
    StateDir* state = nullptr;
    // Whether to fetch the run's companions, to write them beside checkpoints.
    bool wants_companions = false;
    // Trainer::Dependencies::ready.
    std::function<absl::Status()> ready = nullptr;
  };

  // A state older than this many rounds is set aside: it is of little use for the current
  // parameters.
  static constexpr uint64_t kOldestStateRounds = 1000;

  // Joins, builds the workload (borrowed), downloads the snapshot to a temporary file, and restores
  // stored state. Statuses of Exchange and Workload::Build, and DataLoss: the snapshot's state hash
  // is not the announced one.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Begin(const TrainerOptions& options,
                                                            Workload* workload,
                                                            const Dependencies& deps,
                                                            Trainer::Observer observer);

  // Calls Trainer::Run, then saves the worker's state, whatever the status.
  absl::Status Train();

  const TrainSummary& summary() const { return trainer_->summary(); }
  const v1::JoinResponse& run() const { return run_; }
  // The run's companions, if wants_companions; constant after Begin.
  const Companions& companions() const { return companions_; }

 private:
  TrainingRun(const TrainerOptions& options, Workload* workload, const Dependencies& deps)
      : options_(options), workload_(workload), deps_(deps) {}

  // Joins and loads the snapshot; joins again if the snapshot was deleted before it was downloaded.
  // With a run id: joins that run only.
  absl::Status JoinAndLoad(const v1::JoinRequest& request);
  // `folder`: for downloads.
  absl::Status Join(const v1::JoinRequest& request, const std::string& folder);
  absl::Status LoadSnapshot(const std::string& folder);
  absl::Status LoadCompanions(const std::string& folder);
  absl::Status Resync();

  // Loads the stored state, if it is of this worker. If Join then refuses its run, it is set aside.
  absl::Status LoadState();
  absl::Status JoinWithState();
  // Restores it in the learner and the trainer, if it fits the current run.
  absl::Status RestoreState();
  std::string ReasonToSetAside() const;

  // Constant after construction.
  const TrainerOptions options_;
  Workload* const workload_;
  const Dependencies deps_;

  std::optional<StateReader> state_;  // until it is restored
  v1::JoinResponse run_;
  Companions companions_;
  bool built_ = false;  // the workload
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace distro::worker
