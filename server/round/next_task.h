// Chooses the round thread's next task: one pure function. Decide() considers only the open round;
// here its result is combined with sessions, restarts, pauses and drains. What is to be done comes
// back as a value, and RoundThread does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "distro/v1/admin.pb.h"
#include "distro/v1/run.pb.h"
#include "server/round/control.h"
#include "server/round/run_position.h"
#include "server/session/membership.h"

namespace distro::server {

struct RoundTask {
  enum Kind {
    kNone,
    kExpire,     // leases are over, or workers are silent
    kEnter,      // SYNCED workers take part from the next samples on
    kAdmission,  // rules changed the quarantine, which is to be stored
    kStart,
    kOpen,
    kReopen,
    kClose,
    kCommit,
    kDone,
    kDrained
  };
  struct StateNow {
    v1::RunState state;
    std::string reason;
  };

  Kind kind = kNone;
  absl::Duration at = absl::InfiniteDuration();  // kNone: when to look again
  std::vector<SegmentId> segments = {};          // kClose
  bool by_deadline = false;                      // kClose: somebody expected is missing
  // Before the task: Control::ShowPause(), then the run's state and what it waits for.
  bool show_pause = false;
  std::optional<StateNow> state_now = std::nullopt;
};

// The inputs of the decision; all borrowed, and guarded by the mutex of SharedRun, which is held.
struct TaskInputs {
  const v1::RunConfig* config = nullptr;
  const Control* control = nullptr;
  const Membership* members = nullptr;
  const RunPosition* position = nullptr;
  bool started = false;              // the start record is written
  bool header_made = false;          // of the open round
  uint64_t quarantines_written = 0;  // of members->quarantine_changes()
  absl::Duration retry_at;           // next attempt after a disk error
  absl::Duration grace_ends;  // after a restart: until then workers with samples may come back
};

RoundTask NextTask(const TaskInputs& inputs, absl::Duration now);

}  // namespace distro::server
