// Everything a worker holds of the run it joined: configuration, workload, trainer. Built from
// what the exchange delivers; the same for a worker process, for a worker of a simulation in one
// process, and for a Python program.
//
// Not thread-safe: one training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/exchange/exchange.h"
#include "distro/v1/session.pb.h"
#include "worker/state/state_dir.h"
#include "worker/train/phase_clock.h"
#include "worker/train/trainer.h"
#include "worker/train/workload.h"

namespace distro::worker {

class TrainingRun {
 public:
  // What is borrowed outlives the run.
  struct Parts {
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
    // Keeps the worker's own state; nullptr: the momentum starts at 0 and ends with the process.
    StateDir* state = nullptr;
    // Whether the run's companions are fetched: for whoever writes checkpoints.
    bool wants_companions = false;
  };

  // A state that is older than this many rounds is set aside: its momentum says little about the
  // parameters of today.
  static constexpr uint64_t kOldestStateRounds = 1000;

  // Joins, builds the workload, which is borrowed, fetches the snapshot through a file in
  // `scratch_dir` (removed again), and goes on with the state that is kept. Besides the statuses of
  // Exchange and Workload::Build: DataLoss: the snapshot's state hash is not the announced one.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Begin(const TrainerOptions& options,
                                                            const std::string& scratch_dir,
                                                            Workload* workload, const Parts& parts,
                                                            Trainer::Observer observer);

  // Trainer::Run; then the worker's own state is saved, however it ended.
  absl::Status Train();

  const TrainSummary& summary() const { return trainer_->summary(); }
  const v1::JoinResponse& run() const { return run_; }
  // Where they are wanted; constant after Begin.
  const Companions& companions() const { return companions_; }

 private:
  TrainingRun(const TrainerOptions& options, const std::string& scratch_dir, Workload* workload,
              const Parts& parts)
      : options_(options), scratch_dir_(scratch_dir), workload_(workload), parts_(parts) {}

  // Joins and has the snapshot as a replica; joins again while the snapshot that Join named is gone
  // before it came. With a run id: of that run only.
  absl::Status JoinAndLoad(const v1::JoinRequest& request);
  absl::Status Join(const v1::JoinRequest& request);
  absl::Status LoadSnapshot();
  absl::Status LoadCompanions();
  absl::Status Resync();

  // The state that is kept, if it is of this worker. The Join that it is sent with may refuse its
  // run: then it is set aside.
  absl::Status LoadState();
  absl::Status JoinWithState();
  // Into the learner and the trainer, if it fits the run as it is now.
  absl::Status RestoreState();
  std::string ReasonToSetAside() const;

  // Constant after construction.
  const TrainerOptions options_;
  const std::string scratch_dir_;
  Workload* const workload_;
  const Parts parts_;

  std::optional<StateReader> state_;  // until it is restored
  v1::JoinResponse run_;
  Companions companions_;
  bool built_ = false;  // the workload
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace distro::worker
