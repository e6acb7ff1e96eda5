// The reason of a status, in one word. Log lines, metric labels, replies to peers and the docs use
// the same word (docs/protocol.md, "Statuses"). It is stored as a payload of absl::Status;
// common/net/rpc/status.h sends it over gRPC.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// A status with this code and reason, such as "diverged". Requires a code other than OK.
absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message);

// The reason; empty if the status has none.
std::string ReasonOf(const absl::Status& status);

// The same status with a time before which the caller should not retry. Requires a finite duration
// of 0 or more.
absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after);

// The time set by WithRetryAfter; nullopt if there is none.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace distro
