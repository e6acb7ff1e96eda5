// When the bytes of a frame began to travel, as far as the receiver can tell: frames of a stream come one after the other,
// and one that was made late cannot have left early. The clocks of the two ends are compared by the fastest frame so far,
// so its own flight counts as none. Times are monotonic, each end's own. Not thread-safe.
#pragma once

#include <algorithm>
#include <optional>

#include "absl/time/time.h"

namespace distro {

class FlightTime {
 public:
  // A frame is there at `now`. `made_at` by the sender's clock; not set: it was ready all the time.
  absl::Duration Since(std::optional<absl::Duration> made_at, absl::Duration now) {
    absl::Duration since = last_.value_or(now);
    if (made_at) {
      offset_ = std::min(offset_, now - *made_at);
      since = std::max(*made_at + offset_, last_.value_or(-absl::InfiniteDuration()));
    }
    last_ = now;
    return std::min(since, now);
  }
  // Up to `now` nobody read.
  void Pause(absl::Duration now) { last_ = now; }

 private:
  absl::Duration offset_ =
      absl::InfiniteDuration();         // our clock ahead of theirs, and the fastest flight
  std::optional<absl::Duration> last_;  // arrival
};

}  // namespace distro
