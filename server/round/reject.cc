#include "server/round/reject.h"

#include <algorithm>

#include "common/base/reason.h"

namespace distro::server {

std::string RejectReason(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (std::ranges::find(kRejectReasons, reason) != kRejectReasons.end()) return reason;
  return status.code() == absl::StatusCode::kInvalidArgument ? "malformed" : "no_session";
}

}  // namespace distro::server
