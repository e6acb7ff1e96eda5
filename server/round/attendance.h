// Tracks the workers of a run: sessions and states, the times of their updates, the deadline of the
// next round, and whether a link can keep up (docs/protocol.md, "Membership", "Times").
//
// Passive: under the manager's mutex. What a worker's new state means to the open round and to its
// streams is its owner's.
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

class Attendance {
 public:
  // A worker's state changed; the word is one of kMemberReasons. Not OK: its streams end with
  // `end`.
  using OnChange =
      std::function<void(const Worker&, absl::string_view word, const absl::Status& end)>;

  // All pointers are borrowed.
  Attendance(const RunIdentity* run, const MembershipOptions& options, const Clock* clock, Log* log,
             RunObserver* observer, OnChange on_change);

  Membership& members() { return members_; }
  const Membership& members() const { return members_; }

  // Begins a session, or repeats it. Returns whether it replaced an older process of the name.
  // FailedPrecondition "version", ResourceExhausted "too_slow", or as Membership::Join.
  absl::StatusOr<bool> Join(const v1::JoinRequest& request);
  bool quarantined(absl::string_view name) const;

  // Pace ---------------------------------------------------------------------------------------

  void RoundOpened(RoundId round);
  // Of a record that an earlier process wrote, or of the round that was just committed.
  void Learn(const v1::RoundHeader& header, absl::Duration duration);
  void RoundOver() { update_times_.Close(clock_->MonotonicNow()); }
  // The last byte of the worker's update came, or was refused because it was late. On probation
  // nobody waits for an update, so it does not count.
  void TimeUpdate(RoundId round, const std::string& worker);
  // Of the next round; from Open.
  absl::Duration Deadline() const { return deadline_.Deadline(); }
  uint64_t log_bytes_per_second() const { return log_rate_.BytesPerSecond(); }
  // What a worker's link has to carry.
  v1::LinkNeeds LinkNeeds() const;

  // Views --------------------------------------------------------------------------------------

  // Peers say what they like: a few of them move the median little, and the mean anywhere.
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
  // Of workers that members_ knows; not there: since the start.
  std::map<std::string, absl::Duration, std::less<>> state_since_;
  UpdateTimes update_times_;
  AdaptiveDeadline deadline_;
  LogRate log_rate_;
};

// The run's max_workers, or fewer: runs that an earlier version created may have more than a
// round's header has room for. Their names are shorter than they may be, so as many as there were
// go on.
uint32_t WorkersThatFit(const RunIdentity& run, const RoundLog& rounds);

// InvalidArgument: too few fit for a round (common/round_log/header_bound.h).
absl::Status CheckRoom(const RunIdentity& run, bool started, uint32_t max_workers, Log* log);

}  // namespace distro::server
