// Tracks the workers of a run: sessions and states, the times of their updates, the deadline of the
// next round, and whether a link can keep up (docs/protocol.md, "Membership", "Times").
//
// Passive: guarded by the mutex of SharedRun. Its owner applies a worker's new state to the open
// round and to streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "distro/v1/link.pb.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"
#include "server/round/pace.h"
#include "server/round/run_observer.h"
#include "server/round/run_status.h"
#include "server/session/membership.h"

namespace distro::server {

class RunWorkers {
 public:
  // A worker's state changed; the word is one of kMemberReasons. Not OK: its streams end with
  // `end`.
  using OnChange =
      std::function<void(const Worker&, absl::string_view word, const absl::Status& end)>;

  // All pointers are borrowed.
  RunWorkers(const RunIdentity* run, const MembershipOptions& options, const Clock* clock, Log* log,
             RunObserver* observer, OnChange on_change);

  Membership& members() { return members_; }
  const Membership& members() const { return members_; }

  // Begins a session, or repeats it. Returns whether it replaced an older process of the name.
  // FailedPrecondition "version", ResourceExhausted "too_slow", or as Membership::Join.
  absl::StatusOr<bool> Join(const v1::JoinRequest& request);
  bool quarantined(absl::string_view name) const;

  // Pace ---------------------------------------------------------------------------------------

  void RoundOpened(RoundId round);
  // Adds the statistics of a record: written by an earlier process, or just committed.
  void Learn(const v1::RoundHeader& header, absl::Duration duration);
  void RoundOver() { update_times_.Close(clock_->MonotonicNow()); }
  // The last byte of the worker's update arrived, or was refused as late. Updates on probation are
  // not timed, because no round waits for them.
  void TimeUpdate(RoundId round, const std::string& worker);
  // The deadline of the next round, from Open.
  absl::Duration Deadline() const { return deadline_.Deadline(); }
  uint64_t log_bytes_per_second() const { return log_rate_.BytesPerSecond(); }
  // The bandwidth that a worker's link needs.
  v1::LinkNeeds LinkNeeds() const;

  // Views --------------------------------------------------------------------------------------

  // The median of the workers' last evaluations: a few false reports move it little.
  std::optional<double> EvaluationLoss() const;
  // The workers, and since when they are in their states.
  void FillStatus(RunStatus* status) const;

 private:
  void Changed(const Worker& worker, absl::string_view word);
  absl::Status CheckLink(uint64_t download_bytes_per_second) const;

  // Constant after construction.
  const RunIdentity* const run_;
  const Clock* const clock_;
  RunObserver* const observer_;
  const OnChange on_change_;
  const absl::Duration started_at_;

  Membership members_;
  // Workers in members_ that are missing here have their state since the start.
  std::map<std::string, absl::Duration, std::less<>> state_since_;
  UpdateTimes update_times_;
  AdaptiveDeadline deadline_;
  LogRate log_rate_;
};

// The run's max_workers, or fewer if a round's header has no room for them, as in runs created by
// an earlier version. The number of workers that have already taken part is always allowed, since
// their names are shorter than the maximum.
uint32_t WorkersThatFit(const RunIdentity& run, const RoundLog& rounds);

// InvalidArgument: too few fit for a round (common/run/record/header_bound.h).
absl::Status CheckRoom(const RunIdentity& run, bool started, uint32_t max_workers, Log* log);

}  // namespace distro::server
