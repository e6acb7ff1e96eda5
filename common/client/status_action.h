// Decides how a client reacts to a failed call (docs/exchange.md, "Failures"): by the status's
// reason, or by its code if it has none, never by its text. Pure.
#pragma once

#include "absl/status/status.h"

namespace distro {

enum class StatusAction {
  // The aggregator is unreachable, busy, or an old process: the same call may succeed later.
  kRetry,
  // The aggregator does not know this session, or the call came at the wrong time: ask where the
  // run stands. Without a session: a final refusal.
  kRejoin,
  // The log is not this replica's, or begins later: load a snapshot and follow the log again.
  kResync,
  // A final refusal: the client ends with this status.
  kEnd,
};

// Requires a status that is not OK.
StatusAction ActionFor(const absl::Status& status);

}  // namespace distro
