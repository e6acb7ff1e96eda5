// What a failed call means for the archiver: by the status's reason, or its code where it has none; never by its text. Pure.
#pragma once

#include "absl/status/status.h"

namespace distro::tools {

enum class Verdict {
  kRetry,        // the aggregator is away, busy, stopping, or an older one
  kNewSnapshot,  // the log is not this replica's, or begins later: start again from the newest snapshot
  kEnd,          // an answer that does not change
};

// Requires a status that is not OK.
Verdict VerdictOf(const absl::Status& status);

}  // namespace distro::tools
