// Checks that a peer belongs to this run, this epoch and this chain of records, by the log.
//
// Passive: guarded by the mutex of SharedRun.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "distro/v1/session.pb.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"
#include "server/session/membership.h"

namespace distro::server {

class PeerChecks {
 public:
  // All are borrowed.
  PeerChecks(const RunIdentity* run, EpochId epoch, const RoundLog* round_log, Log* log)
      : run_(run), epoch_(epoch), round_log_(round_log), log_(log) {}

  // FailedPrecondition "other_run"; `theirs` and `ours` introduce the two ids in the message.
  absl::Status CheckRun(absl::string_view run_id, absl::string_view theirs,
                        absl::string_view ours = "the aggregator's is") const;
  // OK, or "fenced": the caller claims to have seen a later epoch of this run. The claim is not
  // verified, so other callers are not refused; it is logged once.
  absl::Status CheckEpochSeen(uint64_t epoch);
  // As CheckEpochSeen, and "wrong_epoch": the caller is of an earlier epoch.
  absl::Status CheckEpoch(uint64_t epoch);
  // FailedPrecondition "diverged": before `from` the caller's chain hash is not ours, or `from` is
  // ahead of `head`, which is open or opens next.
  absl::Status CheckChain(RoundId head, RoundId from, uint64_t hash) const;
  Progress ProgressOf(const v1::HeartbeatRequest& request, RoundId head) const;
  // Chain hash of the last record; 0 without one.
  uint64_t HashBefore(RoundId head) const {
    return round_log_->has_start() ? round_log_->HashBefore(head) : 0;
  }

 private:
  const RunIdentity* const run_;
  const EpochId epoch_;
  const RoundLog* const round_log_;
  Log* const log_;
  bool later_epoch_seen_ = false;
};

}  // namespace distro::server
