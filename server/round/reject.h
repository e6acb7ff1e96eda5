// Why an upload was refused, as the metric's label. Pure.
#pragma once

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro::server {

// All values of updates_rejected_total{reason}.
inline constexpr std::array<absl::string_view, 15> kRejectReasons = {
    "conflict",    "draining",   "fenced",     "late",        "limit",
    "malformed",   "no_samples", "no_session", "not_open",    "paused",
    "quarantined", "replaced",   "stalled",    "wrong_epoch", "wrong_round"};

// The status's reason (common/base/reason.h) when it is one of these; otherwise by its code: "malformed" (InvalidArgument) or
// "no_session".
std::string RejectReason(const absl::Status& status);

}  // namespace distro::server
