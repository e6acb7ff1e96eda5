// The state of a run and its reason: pauses and drains (docs/protocol.md, "The process").
//
// Passive: guarded by the mutex of SharedRun. An operator's decision is durable before it is set
// here.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/store.pb.h"
#include "server/round/run_position.h"

namespace distro::server {

class Control {
 public:
  // Borrowed; `position`, guarded by the same mutex, provides the round for log lines.
  Control(const RunPosition* position, Log* log) : position_(position), log_(log) {}

  // State --------------------------------------------------------------------------------------

  // Logs each change of the state or of the awaited condition.
  void Set(v1::RunState state, std::string reason);
  v1::RunState state() const { return state_; }
  // As peers see it.
  v1::RunState visible_state() const { return draining() ? v1::RUN_STATE_DRAINING : state_; }
  const std::string& reason() const { return reason_; }

  // The run was extended to `rounds`: if it was done, it waits for workers again.
  void Extended(uint64_t rounds);

  // Pause --------------------------------------------------------------------------------------

  void Restore(const v1::StoredAdmission& decided);
  void Pause(const std::string& reason);
  void Resume();
  bool paused() const { return paused_; }
  // Sets the paused state at once between rounds; an open round ends first.
  void ShowPause();

  // Drain and end ------------------------------------------------------------------------------

  // Only the first call counts.
  void Drain(absl::Duration ends);
  bool draining() const { return drain_ends_.has_value(); }
  // Requires draining().
  absl::Duration drain_ends() const { return *drain_ends_; }
  void End() { ended_ = true; }
  bool ended() const { return ended_; }  // drained or stopped

  // The status for new callers. Its retry hint is the remaining grace, after which another process
  // may answer here.
  absl::Status DrainingError(absl::Duration now) const;
  // Whether an upload to the head may continue. Unavailable "draining", "paused", "not_open".
  absl::Status CheckOpen(absl::Duration now) const;

 private:
  const RunPosition* const position_;
  Log* const log_;

  v1::RunState state_ = v1::RUN_STATE_WAITING;
  std::string reason_ = "starting";
  bool paused_ = false;
  std::string pause_reason_;
  std::optional<absl::Duration> drain_ends_;  // set: draining
  bool ended_ = false;
};

// The status with which subscriptions and pending snapshots end when the aggregator stops.
absl::Status Draining();

}  // namespace distro::server
