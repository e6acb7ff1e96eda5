// Detects a transfer that stalls or trickles: while we wait for the peer, `bytes` must move within
// every `timeout`. Time in which the peer waits for us does not count. The caller has the clock.
// Pure state, not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace distro::server {

class StallWatch {
 public:
  // The peer's time runs from `now`.
  StallWatch(absl::Duration timeout, uint64_t bytes, absl::Duration now)
      : timeout_(timeout), bytes_(bytes), since_(now) {}

  // The peer waits for us, until Wait().
  void Work(absl::Duration now) {
    if (!working_since_) working_since_ = now;
  }
  // We wait for the peer.
  void Wait(absl::Duration now) {
    if (working_since_) since_ += now - *working_since_;
    working_since_.reset();
  }
  void Moved(uint64_t bytes, absl::Duration now) {
    moved_ += bytes;
    if (moved_ >= bytes_) Progress(now);
  }
  // Something is done, however few bytes it was.
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
