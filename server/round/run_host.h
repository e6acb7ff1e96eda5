// The data folder's run, from "there is none yet" to "its rounds go on": creates it, opens its log,
// runs its round thread. Thread-safe.
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
#include "server/round/snapshot_desk.h"

namespace distro::server {

class RunHost {
 public:
  // `clock`, `log` and `observer` are borrowed. `on_fatal` is called once, by the round thread,
  // when it had to stop.
  RunHost(std::unique_ptr<RunStore> store, const Clock* clock, Log* log, RunObserver* observer,
          const RoundManagerOptions& options, std::function<void(absl::Status)> on_fatal);
  // Stops, and joins the round thread. No rpc may be running.
  ~RunHost();

  // Goes on with the run that the folder holds; OK when it holds none.
  absl::Status Continue();
  // Creates the run from a checkpoint folder of this machine, or goes on with the same one.
  // FailedPrecondition: the folder holds another run.
  absl::Status CreateFromFolder(const v1::RunConfig& config, const std::string& checkpoint_dir);

  // An upload of a run. First the header: where the bytes of snapshot and companions go on, or the id of the run
  // that exists. InvalidArgument: the configuration is refused. FailedPrecondition: there is
  // another run.
  absl::StatusOr<v1::CreateRunResponse> BeginCreate(const v1::CreateRunHeader& header);
  // Then its frames; the last one creates the run and the response names it. Not set: more frames
  // are wanted.
  absl::StatusOr<std::optional<v1::CreateRunResponse>> AddFrame(const v1::CreateRunHeader& header,
                                                                const v1::SnapshotFrame& frame);

  // nullptr: there is no run yet. Once there is one it stays until the host ends.
  RoundManager* manager() const { return manager_view_.load(std::memory_order_acquire); }
  // Where snapshots come in and go out; nullptr as manager().
  SnapshotDesk* snapshots() const { return desk_view_.load(std::memory_order_acquire); }
  // Bytes of the round log; 0 without a run.
  uint64_t log_bytes() const;
  // fsyncs of commits from now on. Set before Continue() or a creation.
  void SetFsyncObserver(std::function<void(absl::Duration)> observer) {
    fsync_observer_ = std::move(observer);
  }

  EpochId epoch() const { return epoch_; }
  // As RoundManager::Stop.
  void Stop();
  // As RoundManager::Drain; no run is created any more.
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
  std::unique_ptr<SnapshotDesk> desk_ ABSL_GUARDED_BY(mu_);
  std::thread thread_ ABSL_GUARDED_BY(mu_);
  std::atomic<RoundManager*> manager_view_{nullptr};
  std::atomic<SnapshotDesk*> desk_view_{nullptr};
  std::atomic<RoundLog*> log_view_{nullptr};
  std::atomic<bool> draining_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace distro::server
