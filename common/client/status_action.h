// Decides how a client reacts to a failed call (docs/exchange.md, "What happens when something
// fails"): by the status's reason, by its code where there is none, never by its text. Pure.
#pragma once

#include "absl/status/status.h"

namespace distro {

enum class StatusAction {
  // The aggregator is away, busy, or an older one: the same call may succeed later.
  kRetry,
  // It does not know this session, or the call came at the wrong moment: ask where the run stands.
  // Who has no session has nothing to mend: an answer that does not change.
  kRejoin,
  // The log is not this replica's, or begins later: a snapshot and the log again.
  kResync,
  // An answer that does not change: the client ends with this status.
  kEnd,
};

// Requires a status that is not OK.
StatusAction ActionFor(const absl::Status& status);

}  // namespace distro
