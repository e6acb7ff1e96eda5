// Detects a stalled or very slow transfer: while the server waits for the peer, `bytes` must move
// within every `timeout`. Time in which the peer waits for the server does not count. The caller
// passes the time. Pure state, not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace distro::server {

class StallWatch {
 public:
  // The timeout starts at `now`.
  StallWatch(absl::Duration timeout, uint64_t bytes, absl::Duration now)
      : timeout_(timeout), bytes_(bytes), since_(now) {}

  // The peer waits for the server, until Wait().
  void Work(absl::Duration now) {
    if (!working_since_) working_since_ = now;
  }
  // The server waits for the peer.
  void Wait(absl::Duration now) {
    if (working_since_) since_ += now - *working_since_;
    working_since_.reset();
  }
  void Moved(uint64_t bytes, absl::Duration now) {
    moved_ += bytes;
    if (moved_ >= bytes_) Progress(now);
  }
  // A step is complete, however few bytes it had: restarts the timeout.
  void Progress(absl::Duration now) {
    moved_ = 0;
    since_ = now;
    if (working_since_) working_since_ = now;
  }

  bool Stalled(absl::Duration now) const { return !working_since_ && now - since_ >= timeout_; }

 private:
  const absl::Duration timeout_;
  const uint64_t bytes_;
  absl::Duration since_;  // of the current timeout
  std::optional<absl::Duration> working_since_;
  uint64_t moved_ = 0;  // since since_
};

}  // namespace distro::server
