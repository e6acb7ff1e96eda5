#include "common/client/status_action.h"

#include <string>

#include "absl/strings/string_view.h"
#include "common/base/reason.h"

namespace distro {
namespace {

struct ReasonVerdict {
  absl::string_view reason;
  Verdict verdict;
};

// Reasons for which the code alone does not say what to do (docs/protocol.md, "Statuses").
constexpr ReasonVerdict kByReason[] = {
    {"diverged", Verdict::kResync},
    {"pruned", Verdict::kResync},
    {"no_session", Verdict::kRejoin},
    {"draining", Verdict::kRetry},
    {"disk", Verdict::kRetry},
    {"fenced", Verdict::kRetry},
    {"damaged", Verdict::kRetry},
    {"full", Verdict::kRetry},
    {"limit", Verdict::kRetry},
    {"not_open", Verdict::kRetry},
    {"paused", Verdict::kRetry},
    {"stalled", Verdict::kRetry},
    {"other_data", Verdict::kEnd},
    {"other_run", Verdict::kEnd},
    {"quarantined", Verdict::kEnd},
    {"replaced", Verdict::kEnd},
    {"role", Verdict::kEnd},
    {"too_slow", Verdict::kEnd},
    {"unauthenticated", Verdict::kEnd},
    {"version", Verdict::kEnd},
    {"wrong_name", Verdict::kEnd},
};

}  // namespace

Verdict VerdictOf(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  for (const ReasonVerdict& entry : kByReason) {
    if (entry.reason == reason) return entry.verdict;
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::
        kCancelled:                    // by a proxy or a stopping server: the session knows our own
    case absl::StatusCode::kInternal:  // a broken HTTP/2 stream
    case absl::StatusCode::kUnknown:
      return Verdict::kRetry;
    case absl::StatusCode::kFailedPrecondition:
      return Verdict::kRejoin;
    default:
      return Verdict::kEnd;
  }
}

}  // namespace distro
