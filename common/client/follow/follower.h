// The objects shared by the parts of a client that follows a run's log. All are borrowed and
// outlive the parts.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/client_state.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/client/status_action.h"

namespace distro {

struct Follower {
  ClientState* state = nullptr;
  TransferMeter* meter = nullptr;
  Log* log = nullptr;
  const Clock* clock = nullptr;
  BackoffOptions backoff;
  // Seed of the jitter in delays; differs from process to process.
  uint64_t seed = 0;
  // The client has a session: another Join can restore it, and it ends with the feed.
  bool member = false;
};

// Whether a call that failed with this status may succeed later. If a member must first learn where
// the run stands, also requests that.
inline bool MayPass(const Follower& follower, const absl::Status& status) {
  const StatusAction action = ActionFor(status);
  if (action != StatusAction::kRejoin || !follower.member) return action == StatusAction::kRetry;
  follower.state->WantHead();
  return true;
}

}  // namespace distro
