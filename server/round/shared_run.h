// The state of a run that requests, operators and the round thread share, under one mutex. The
// mutex is private: State is reached through a SharedRun::Lock only, which holds it.
//
//   const SharedRun::Lock run(shared);
//   if (run->control.draining()) ...
//
// A function with a parameter `const SharedRun::Lock&` or `State&` is called with the mutex held.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/steady_cond_var.h"
#include "common/feed/broadcast.h"
#include "server/log/admission_store.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"
#include "server/log/served_log.h"
#include "server/log/snapshot_store.h"
#include "server/round/control.h"
#include "server/round/integrity.h"
#include "server/round/open_results.h"
#include "server/round/peer_checks.h"
#include "server/round/recorder.h"
#include "server/round/run_observer.h"
#include "server/round/run_position.h"
#include "server/round/run_workers.h"

namespace distro::server {

struct RoundManagerOptions {
  absl::Duration suspect_after = absl::Seconds(6);       // silence after which rounds do not wait
  absl::Duration lease = absl::Seconds(30);              // silence after which a worker has gone
  absl::Duration heartbeat_interval = absl::Seconds(2);  // told to workers; below lease / 3
  absl::Duration drain_grace = absl::Seconds(30);        // how long a drained round may continue
  // Of recent results in memory; above it subscribers read the log.
  uint64_t ring_bytes = uint64_t{256} << 20;
  bool serves_objects = false;            // over HTTP, to subscribers that ask for them
  std::vector<std::string> mirrors = {};  // URLs of mirrors of the objects, told to followers
};

// The run's files that its rounds write or read; borrowed.
struct RunFiles {
  RoundLog* rounds = nullptr;
  AdmissionStore* admission = nullptr;  // written by the run only
  const SnapshotStore* snapshots = nullptr;
};

// Constants of a run. All pointers are borrowed.
struct RunContext {
  std::shared_ptr<const RunIdentity> run;
  EpochId epoch;
  RunFiles files;
  const Clock* clock = nullptr;
  Log* log = nullptr;
  RunObserver* observer = nullptr;
  RoundManagerOptions options;
};

class SharedRun {
 public:
  // What the mutex guards. The parts are passive and have their own contracts; State passes on
  // changes of a worker that affect several parts.
  class State {
   public:
    // `shared` owns it.
    explicit State(SharedRun* shared);

    // Continues at the end of the log, with the decisions of operators. Statuses as
    // RoundManager::Create.
    absl::Status Restore(const v1::StoredAdmission& decided);
    void WakeRoundThread();

    RunPosition position;
    Control control;
    RunWorkers workers;
    Integrity integrity;
    PeerChecks peer_checks;
    DiskTrouble disk;
    uint64_t quarantines_written = 0;  // of quarantine_changes()
    bool round_thread_woken = false;   // for AwaitWork

   private:
    void OnMemberChange(const Worker& worker, absl::string_view word, const absl::Status& end);

    SharedRun* const shared_;
  };

  // Holds the mutex while it lives.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(SharedRun* run) ABSL_EXCLUSIVE_LOCK_FUNCTION(run->mu_) : run_(run) {
      run_->mu_.Lock();
    }
    ~Lock() ABSL_UNLOCK_FUNCTION() { run_->mu_.Unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    State& operator*() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return run_->state_; }
    State* operator->() const { return &**this; }

   private:
    SharedRun* const run_;
  };

  explicit SharedRun(const RunContext& constants);

  absl::Duration now() const { return context.clock->MonotonicNow(); }
  // A write failed: only reports it.
  void NoteDiskError(const absl::Status& error);
  // Drained or stopped: subscriptions end.
  void EndNow();
  // Blocks until WakeRoundThread(), or until this time of the context's clock.
  void AwaitWork(absl::Duration until);
  // Blocks until EndNow(), at most `timeout` of real time.
  void AwaitEnd(absl::Duration timeout) const;

  // Constant after construction.
  const RunContext context;
  const absl::Duration started_at;
  const uint32_t max_workers;  // the run's, or fewer if a round's header has no room for them

  // Have their own locking.
  Broadcast broadcast;
  OpenResults open_results;  // empty where no objects are served
  DamagedRecords damaged;

 private:
  mutable absl::Mutex mu_;
  mutable SteadyCondVar woken_;  // the round thread, or the end of the run
  State state_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
