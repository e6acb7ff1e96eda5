// Everything a worker holds of the run it joined: configuration, model, node, trainer. Built from
// what the exchange delivers; the same for a worker process and for a worker of a simulation in one
// process.
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
#include "common/layout/layout.h"
#include "distro/v1/session.pb.h"
#include "worker/data/token_file.h"
#include "worker/model/model.h"
#include "worker/node/node.h"
#include "worker/state/state_dir.h"
#include "worker/train/phase_clock.h"
#include "worker/train/sample_reader.h"
#include "worker/train/trainer.h"

namespace distro::worker {

class TrainingRun {
 public:
  // What is borrowed outlives the run.
  struct Parts {
    const TokenSource* tokens;
    // The text that all hold, of a run of local data: then `tokens` are this worker's own.
    const TokenSource* public_tokens = nullptr;
    Exchange* exchange;
    PhaseClock* phases;
    Log* log;
    // Keeps the worker's own state; nullptr: the momentum starts at 0 and ends with the process.
    StateDir* state = nullptr;
  };

  // A state that is older than this many rounds is set aside: its momentum says little about the
  // parameters of today.
  static constexpr uint64_t kOldestStateRounds = 1000;

  // Joins, fetches the snapshot through a file in `scratch_dir` (removed again), builds the model,
  // and goes on with the state that is kept. Besides the statuses of Exchange: InvalidArgument: the
  // model is not built here, its tensors are not the run's, or the data does not fit the model; the
  // message names key or token. DataLoss: the snapshot's state hash is not the announced one.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Begin(const TrainerOptions& options,
                                                            const std::string& scratch_dir,
                                                            const Parts& parts,
                                                            Trainer::Observer observer);

  // A rank that is stuck may come back and use layout and model: they are left to it, for the rest
  // of the process.
  ~TrainingRun();

  // Trainer::Run; then the worker's own state is saved, however it ended.
  absl::Status Train();

  const TrainSummary& summary() const { return trainer_->summary(); }
  const v1::JoinResponse& run() const { return run_; }
  const Node& node() const { return *node_; }
  // Node::PeakFlops.
  absl::StatusOr<double> PeakFlops() { return node_->PeakFlops(); }

 private:
  TrainingRun(const TrainerOptions& options, const std::string& scratch_dir, const Parts& parts)
      : options_(options), scratch_dir_(scratch_dir), parts_(parts) {}

  // Joins and has the snapshot as a replica; joins again while the snapshot that Join named is gone
  // before it came. With a run id: of that run only.
  absl::Status JoinAndLoad(const v1::JoinRequest& request);
  absl::Status Join(const v1::JoinRequest& request);
  absl::Status BuildModel();
  absl::Status OpenSamples(int vocab_size);
  absl::Status MakeNode();
  absl::Status LoadSnapshot();
  absl::Status Resync();

  // The state that is kept, if it is of this worker. The Join that it is sent with may refuse its
  // run: then it is set aside.
  absl::Status LoadState();
  absl::Status JoinWithState();
  // Into the node and the trainer, if it fits the run as it is now.
  absl::Status RestoreState();
  std::string ReasonToSetAside() const;

  // Constant after construction.
  const TrainerOptions options_;
  const std::string scratch_dir_;
  const Parts parts_;

  std::optional<StateReader> state_;  // until it is restored
  v1::JoinResponse run_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SampleReader> samples_;
  std::unique_ptr<SampleReader> public_samples_;  // with local data
  UpdateRuleKind rule_ = {};
  std::unique_ptr<Node> node_;
  int micro_batch_samples_ = 0;  // of it
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace distro::worker
