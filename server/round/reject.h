// Why an upload was refused: a status for its sender that carries the metric's label. Pure.
#pragma once

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro::server {

// All values of updates_rejected_total{reason}.
inline constexpr std::array<absl::string_view, 9> kRejectReasons = {
    "conflict", "late",        "malformed",   "no_samples", "no_session",
    "not_open", "wrong_epoch", "wrong_round", "draining"};

// A status of that code with one of the reasons.
absl::Status RejectUpload(absl::StatusCode code, absl::string_view reason,
                          absl::string_view message);

// The status's reason; by its code when it has none: "malformed" (InvalidArgument) or "no_session".
std::string RejectReason(const absl::Status& status);

}  // namespace distro::server
