// The reason of a status, in one word: the same in the log line, the metric label, the answer to a
// peer and the docs (docs/protocol.md, "Statuses"). It is a payload of absl::Status;
// common/rpc/status.h carries it over the wire.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// A status of that code with a reason, such as "diverged". Requires a code other than OK.
absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message);

// Empty: the status has none.
std::string ReasonOf(const absl::Status& status);

// The same status, which also says not to try again earlier. Requires a finite duration of 0 or
// more.
absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after);

// Not set: the status does not say.
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace distro
