// The state of a run that requests, operators and the round thread share, under one mutex. The
// parts are passive and have their own contracts; this class owns them and passes on changes that
// affect several parts.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "server/log/admission_store.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"
#include "server/log/snapshot_store.h"
#include "server/round/control.h"
#include "server/round/integrity.h"
#include "server/round/peer_checks.h"
#include "server/round/recorder.h"
#include "server/round/run_observer.h"
#include "server/round/run_position.h"
#include "server/round/run_workers.h"
#include "server/subscription/broadcast.h"
#include "server/subscription/subscription.h"

namespace distro::server {

struct RoundManagerOptions {
  absl::Duration suspect_after = absl::Seconds(6);       // silence after which rounds do not wait
  absl::Duration lease = absl::Seconds(30);              // silence after which a worker has gone
  absl::Duration heartbeat_interval = absl::Seconds(2);  // told to workers; below lease / 3
  absl::Duration drain_grace = absl::Seconds(30);        // how long a drained round may continue
  // Of recent results in memory; above it subscribers read the log.
  uint64_t ring_bytes = uint64_t{256} << 20;
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
  explicit SharedRun(const RunContext& constants);

  // Continues at the end of the log, with the decisions of operators. Statuses as
  // RoundManager::Create.
  absl::Status Restore(const v1::StoredAdmission& decided) ABSL_LOCKS_EXCLUDED(mu);

  absl::Duration now() const { return context.clock->MonotonicNow(); }
  // A write failed: only reports it.
  void NoteDiskError(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mu);
  // Drained or stopped: subscriptions end.
  void EndNow() ABSL_LOCKS_EXCLUDED(mu);
  // Wakes the round thread.
  void Poke() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Blocks until Poke(), or until this monotonic time.
  void WaitForPoke(absl::Duration until) ABSL_LOCKS_EXCLUDED(mu);

  // Constant after construction.
  const RunContext context;
  const absl::Duration started_at;
  const uint32_t max_workers;  // the run's, or fewer if a round's header has no room for them

  // Have their own locking.
  Broadcast broadcast;
  DamagedRecords damaged;

  mutable absl::Mutex mu;
  RunPosition position ABSL_GUARDED_BY(mu);
  Control control ABSL_GUARDED_BY(mu);
  RunWorkers workers ABSL_GUARDED_BY(mu);
  Integrity integrity ABSL_GUARDED_BY(mu);
  PeerChecks peer_checks ABSL_GUARDED_BY(mu);
  DiskTrouble disk ABSL_GUARDED_BY(mu);
  uint64_t quarantines_written ABSL_GUARDED_BY(mu) = 0;  // of quarantine_changes()

 private:
  void OnMemberChange(const Worker& worker, absl::string_view word, const absl::Status& end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  absl::CondVar changed_;
  bool poked_ ABSL_GUARDED_BY(mu) = false;
};

}  // namespace distro::server
