// Small helpers on absl::Status.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace distro {

// InvalidArgument, "FIELD: WHAT".
inline absl::Status BadField(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// The same status with another message; the reason (reason.h) stays.
inline absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  absl::Status named(status.code(), message);
  status.ForEachPayload([&named](absl::string_view url, const absl::Cord& payload) {
    named.SetPayload(url, payload);
  });
  return named;
}

// The same status with "context: " before its message, so that an error names every level it passed
// ("run.json: k: 0 is outside 1..4096"). OK stays OK; the reason (reason.h) stays.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return WithMessage(status, absl::StrCat(context, ": ", status.message()));
}

}  // namespace distro
