// Which failed calls are worth repeating. Pure.
#pragma once

#include "absl/status/status.h"

namespace distro::worker {

// The aggregator is away, busy or was cut off: the same call may succeed later. Everything else is an answer.
inline bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::
        kCancelled:  // by a proxy or a stopping server: our own are told apart by the session
    case absl::StatusCode::kInternal:  // a broken HTTP/2 stream
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace distro::worker
