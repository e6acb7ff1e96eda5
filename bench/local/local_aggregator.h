// The aggregator of a run whose workers are threads of one process: the rounds of distro-aggregator
// (server/round) over a log in a scratch folder, without a network. For bench and tests.
//
// Its clock stands still, so that no lease and no deadline ends, and records do not depend on the
// machine's speed. It has no round thread: the request that makes a task due executes it, so the
// last upload of a round returns when the round is committed. Thread-safe; outlives its
// LocalExchanges.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "distro/v1/run.pb.h"
#include "server/log/run_identity.h"
#include "server/round/round_manager.h"

namespace distro::server {

// Makes a run of the checkpoint folder; its id follows from its name alone. Writes the initial
// snapshot to `snapshot_path`, a file that must outlive the run. `config` is complete. Blocking.
// Statuses as PrepareInitialSnapshot; InvalidArgument: the configuration does not fit the model's
// layout, or a parameter is not finite.
absl::StatusOr<RunIdentity> MakeLocalRun(const v1::RunConfig& config,
                                         const std::string& checkpoint_dir,
                                         const std::string& snapshot_path);

class LocalAggregator {
 public:
  // The first round opens when start_workers have reported that they have the snapshot. The scratch
  // folder is a temporary one of the system. Internal: it cannot be written. InvalidArgument: as
  // RoundManager::Create.
  static absl::StatusOr<std::unique_ptr<LocalAggregator>> Create(const RunIdentity& run);
  // Removes the folder.
  ~LocalAggregator();

  const RunIdentity& run() const { return *run_; }
  RoundManager& rounds() { return *rounds_; }
  // Does all that is due: call it after each request. An error ends the rounds.
  void Step();
  // Why they ended; OK otherwise.
  absl::Status failure() const;

 private:
  explicit LocalAggregator(const RunIdentity& run);
  absl::Status Open();

  const std::shared_ptr<const RunIdentity> run_;
  const std::unique_ptr<Clock> clock_;
  const std::unique_ptr<Disk> disk_;
  Log log_{LogLevel::kError};
  ObserverList observer_{{}};
  std::string folder_;  // empty: none was made
  std::unique_ptr<RoundLog> round_log_;
  std::unique_ptr<AdmissionStore> admission_;
  std::unique_ptr<SnapshotStore> snapshots_;
  std::unique_ptr<RoundManager> rounds_;

  mutable absl::Mutex mu_;  // held by the thread that executes tasks
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
