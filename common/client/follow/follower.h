// The objects that the parts of a client that follows a log share. All borrowed; all outlive the
// parts.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/backoff.h"
#include "common/client/client_state.h"
#include "common/client/status_action.h"
#include "common/exchange/transfer_meter.h"

namespace distro {

struct Follower {
  ClientState* state = nullptr;
  TransferMeter* meter = nullptr;
  Log* log = nullptr;
  const Clock* clock = nullptr;
  BackoffOptions backoff;
  // Of the delays' jitter: differs from process to process.
  uint64_t seed = 0;
  // It has a session, which another Join can mend and which ends with the feed.
  bool member = false;
};

// Whether a call that failed so may succeed later. When it is for the aggregator to say where the
// run stands, asks it.
inline bool MayPass(const Follower& follower, const absl::Status& status) {
  const StatusAction action = ActionFor(status);
  if (action != StatusAction::kRejoin || !follower.member) return action == StatusAction::kRetry;
  follower.state->WantHead();
  return true;
}

}  // namespace distro
