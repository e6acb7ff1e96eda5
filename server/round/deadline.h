// A round's deadline, from how long updates took of late (docs/protocol.md, "Times"): 1.5 times the 90th percentile of the
// times from Open to a worker's last byte, late ones included, within two bounds. Pure; not thread-safe.
#pragma once

#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace distro::server {

// Rounds whose times count: few, so that a link that becomes slow is given time within a round or two.
inline constexpr size_t kDeadlineRounds = 16;

class AdaptiveDeadline {
 public:
  // Requires 0 < shortest <= longest; longest may be infinite: then there is no deadline.
  AdaptiveDeadline(absl::Duration shortest, absl::Duration longest)
      : shortest_(shortest), longest_(longest) {}

  // A worker's update of `round` was there that long after Open. At most once a worker and round; a round older than the
  // last kDeadlineRounds that were seen is ignored.
  void Add(RoundId round, absl::Duration since_open);

  // From Open: clamp(1.5 * p90, shortest, longest), p90 being the smallest time that at least 90 % do not exceed;
  // `longest` while no time is known.
  absl::Duration Deadline() const;

 private:
  struct Times {
    RoundId round;
    std::vector<absl::Duration> since_open;
  };

  const absl::Duration shortest_;
  const absl::Duration longest_;
  std::deque<Times> rounds_;  // ascending, at most kDeadlineRounds
};

}  // namespace distro::server
