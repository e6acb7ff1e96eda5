// Chooses the round thread's next task. Decide() considers only the open round; here its result is
// combined with sessions, restarts, pauses and drains.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "distro/v1/run.pb.h"
#include "server/round/closing.h"
#include "server/round/control.h"
#include "server/round/run_position.h"
#include "server/session/membership.h"

namespace distro::server {

struct RoundTask {
  enum Kind { kNone, kAdmission, kStart, kOpen, kReopen, kClose, kCommit, kDone, kDrained };
  Kind kind = kNone;
  absl::Duration at = absl::InfiniteDuration();  // kNone: when to look again
  std::vector<ClosedSegment> closed = {};        // kClose: already removed from the round
};

// The inputs of the decision; all borrowed, and guarded by the mutex of SharedRun, which is held.
struct TaskInputs {
  const v1::RunConfig* config = nullptr;
  Control* control = nullptr;
  Membership* members = nullptr;
  RunPosition* position = nullptr;
  bool started = false;              // the start record is written
  bool header_made = false;          // of the open round
  uint64_t quarantines_written = 0;  // of members->quarantine_changes()
  absl::Duration retry_at;           // next attempt after a disk error
  absl::Duration grace_ends;  // after a restart: until then workers with samples may come back
};

// Ends leases, sets in `control` what the run waits for, and removes closing segments from the
// round.
RoundTask NextTask(const TaskInputs& inputs, absl::Duration now);

}  // namespace distro::server
