#include "tools/archiver/verdict.h"

#include <string>

#include "common/base/reason.h"

namespace distro::tools {

Verdict VerdictOf(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (reason == "diverged" || reason == "pruned") return Verdict::kNewSnapshot;
  if (reason == "draining" || reason == "fenced" || reason == "disk" || reason == "limit" ||
      reason == "no_reference" || reason == "damaged") {
    return Verdict::kRetry;
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return Verdict::kEnd;
    default:
      return Verdict::kRetry;
  }
}

}  // namespace distro::tools
