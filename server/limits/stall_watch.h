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

  // From now on the peer waits for the server: that time does not count.
  void Pause(absl::Duration now) {
    if (!paused_since_) paused_since_ = now;
  }
  // From now on the server waits for the peer, which is the initial state.
  void Resume(absl::Duration now) {
    if (paused_since_) since_ += now - *paused_since_;
    paused_since_.reset();
  }
  void Moved(uint64_t bytes, absl::Duration now) {
    moved_ += bytes;
    if (moved_ >= bytes_) Progress(now);
  }
  // A step is complete, however few bytes it had: restarts the timeout.
  void Progress(absl::Duration now) {
    moved_ = 0;
    since_ = now;
    if (paused_since_) paused_since_ = now;
  }

  bool Stalled(absl::Duration now) const { return !paused_since_ && now - since_ >= timeout_; }

 private:
  const absl::Duration timeout_;
  const uint64_t bytes_;
  absl::Duration since_;  // of the current timeout
  std::optional<absl::Duration> paused_since_;
  uint64_t moved_ = 0;  // since since_
};

}  // namespace distro::server
