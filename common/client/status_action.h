// What a failed call means for a worker (docs/exchange.md, "What happens when something fails"): by the status's reason,
// and by its code where there is none; never by its text. Pure.
#pragma once

#include "absl/status/status.h"

namespace distro {

enum class Verdict {
  kRetry,  // the aggregator is away, busy, or an older one: the same call may succeed later
  kRejoin,  // it does not know this session, or the call came at the wrong moment: ask where the run stands
  kResync,  // the log is not this replica's: a snapshot and the log again
  kEnd,     // an answer that does not change: the session ends with this status
};

// Requires a status that is not OK.
Verdict VerdictOf(const absl::Status& status);

}  // namespace distro
