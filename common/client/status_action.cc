#include "common/client/status_action.h"

#include <string>

#include "absl/strings/string_view.h"
#include "common/base/reason.h"

namespace distro {
namespace {

struct ReasonAction {
  absl::string_view reason;
  StatusAction action;
};

// Reasons whose status code does not determine the action (docs/protocol.md, "Statuses").
constexpr ReasonAction kByReason[] = {
    {"diverged", StatusAction::kResync},   {"pruned", StatusAction::kResync},
    {"no_session", StatusAction::kRejoin}, {"draining", StatusAction::kRetry},
    {"disk", StatusAction::kRetry},        {"fenced", StatusAction::kRetry},
    {"damaged", StatusAction::kRetry},     {"full", StatusAction::kRetry},
    {"limit", StatusAction::kRetry},       {"no_reference", StatusAction::kRetry},
    {"not_open", StatusAction::kRetry},    {"paused", StatusAction::kRetry},
    {"stalled", StatusAction::kRetry},     {"other_data", StatusAction::kEnd},
    {"other_run", StatusAction::kEnd},     {"quarantined", StatusAction::kEnd},
    {"replaced", StatusAction::kEnd},      {"role", StatusAction::kEnd},
    {"too_slow", StatusAction::kEnd},      {"unauthenticated", StatusAction::kEnd},
    {"version", StatusAction::kEnd},       {"wrong_name", StatusAction::kEnd},
};

}  // namespace

StatusAction ActionFor(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  for (const ReasonAction& entry : kByReason) {
    if (entry.reason == reason) return entry.action;
  }
  switch (status.code()) {
    case absl::StatusCode::kAborted:  // by a newer call of the same client
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::
        kCancelled:                    // by a proxy or a stopping server: the session knows our own
    case absl::StatusCode::kInternal:  // a broken HTTP/2 stream
    case absl::StatusCode::kUnknown:
      return StatusAction::kRetry;
    case absl::StatusCode::kFailedPrecondition:
      return StatusAction::kRejoin;
    default:
      return StatusAction::kEnd;
  }
}

}  // namespace distro
