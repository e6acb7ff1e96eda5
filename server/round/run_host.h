// Hosts the run of a data folder: creates it, opens its log, and runs its round thread.
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "distro/v1/admin.pb.h"
#include "server/log/run_store.h"
#include "server/round/round_manager.h"
#include "server/round/snapshot_transfers.h"

namespace distro::server {

class RunHost {
 public:
  // `clock`, `log` and `observer` are borrowed. `on_fatal` is called once, by the round thread,
  // when it had to stop.
  RunHost(std::unique_ptr<RunStore> store, const Clock* clock, Log* log, RunObserver* observer,
          const RoundManagerOptions& options, std::function<void(absl::Status)> on_fatal);
  // Stops, and joins the round thread. No rpc may be running.
  ~RunHost();

  // Continues the folder's run; OK if there is none.
  absl::Status Continue();
  // Creates the run from a checkpoint folder on this machine, or continues the same run.
  // FailedPrecondition: the folder has another run.
  absl::Status CreateFromFolder(const v1::RunConfig& config, const std::string& checkpoint_dir);

  // Starts or resumes the upload of a run with its header. The response has the offset from which
  // to send snapshot and companions, or the id of the run that exists. InvalidArgument: the
  // configuration is refused. FailedPrecondition: there is another run.
  absl::StatusOr<v1::CreateRunResponse> BeginCreate(const v1::CreateRunHeader& header);
  // Adds a frame of the snapshot. The last one creates the run, and the response names it; nullopt
  // before.
  absl::StatusOr<std::optional<v1::CreateRunResponse>> AddFrame(const v1::CreateRunHeader& header,
                                                                const v1::SnapshotFrame& frame);

  // nullptr while there is no run. Once set, valid until the host ends.
  RoundManager* manager() const { return manager_view_.load(std::memory_order_acquire); }
  // Receives and serves snapshots; nullptr as manager().
  SnapshotTransfers* snapshots() const { return snapshots_view_.load(std::memory_order_acquire); }
  // Bytes and files of the round log; 0 without a run.
  uint64_t log_bytes() const;
  uint64_t log_files() const;
  // Observes the fsyncs of commits. Set before Continue() or a creation.
  void SetFsyncObserver(std::function<void(absl::Duration)> observer) {
    fsync_observer_ = std::move(observer);
  }

  EpochId epoch() const { return epoch_; }
  // As RoundManager::Stop.
  void Stop();
  // As RoundManager::Drain; also refuses to create a run.
  void Drain();
  // Blocks until the drain is over, at most `timeout` of real time.
  void AwaitDrained(absl::Duration timeout) const;

 private:
  absl::Status ContinueLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunRounds(RoundManager* manager);
  absl::Status CreateUploaded(const v1::CreateRunHeader& header, const Sha256Digest& sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckNotDraining() const;
  void WarnOfGrace(const v1::RunConfig& config);

  // Constant after construction.
  const Clock* const clock_;
  Log* const log_;
  RunObserver* const observer_;
  const RoundManagerOptions options_;
  const std::function<void(absl::Status)> on_fatal_;
  const EpochId epoch_;
  std::function<void(absl::Duration)> fsync_observer_;

  mutable absl::Mutex mu_;
  const std::unique_ptr<RunStore> store_ ABSL_PT_GUARDED_BY(mu_);
  std::unique_ptr<RoundLog> round_log_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RoundManager> manager_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<SnapshotTransfers> snapshots_ ABSL_GUARDED_BY(mu_);
  std::thread thread_ ABSL_GUARDED_BY(mu_);
  std::atomic<RoundManager*> manager_view_{nullptr};
  std::atomic<SnapshotTransfers*> snapshots_view_{nullptr};
  std::atomic<RoundLog*> log_view_{nullptr};
  std::atomic<bool> draining_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace distro::server
