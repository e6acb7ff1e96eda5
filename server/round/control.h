// The state of a run and its reason: pauses and drains (docs/protocol.md, "The process").
//
// Passive: under the manager's mutex. A decision of an operator is durable before it comes here.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/store.pb.h"
#include "server/round/course.h"

namespace distro::server {

class Control {
 public:
  // Borrowed; `course` is under the same mutex, and says which round log lines name.
  Control(const Course* course, Log* log) : course_(course), log_(log) {}

  // State --------------------------------------------------------------------------------------

  // Logged when the state changes, and when it waits for something else.
  void Set(v1::RunState state, std::string reason);
  v1::RunState state() const { return state_; }
  // As peers see it.
  v1::RunState visible_state() const { return draining() ? v1::RUN_STATE_DRAINING : state_; }
  const std::string& reason() const { return reason_; }

  // The run has so many rounds now: one that was done waits for workers again.
  void Extended(uint64_t rounds);

  // Pause --------------------------------------------------------------------------------------

  void Restore(const v1::StoredAdmission& decided);
  void Pause(const std::string& reason);
  void Resume();
  bool paused() const { return paused_; }
  // Between rounds a pause shows at once; an open round ends first.
  void ShowPause();

  // Drain and end ------------------------------------------------------------------------------

  // Only the first one counts.
  void Drain(absl::Duration ends);
  bool draining() const { return drain_ends_.has_value(); }
  // Requires draining().
  absl::Duration drain_ends() const { return *drain_ends_; }
  void End() { ended_ = true; }
  bool ended() const { return ended_; }  // drained or stopped

  // What whoever comes now is told; the hint: after what is left of the grace somebody else may
  // answer here.
  absl::Status DrainingError(absl::Duration now) const;
  // Whether an upload of the head may go on. Unavailable "draining", "paused", "not_open".
  absl::Status CheckOpen(absl::Duration now) const;

 private:
  const Course* const course_;
  Log* const log_;

  v1::RunState state_ = v1::RUN_STATE_WAITING;
  std::string reason_ = "starting";
  bool paused_ = false;
  std::string pause_reason_;
  std::optional<absl::Duration> drain_ends_;  // set: draining
  bool ended_ = false;
};

// What subscriptions, and snapshots that nobody adopts any more, end with when the aggregator
// stops.
absl::Status Draining();

}  // namespace distro::server
