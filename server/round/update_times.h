// When workers' updates arrive, from Open to their last byte: what the adaptive deadline learns from, also of updates
// that came too late. Each worker counts once a round. Bounded by the last rounds. Not thread-safe; times are monotonic.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace distro::server {

// Rounds back to which a late update is still timed; an older one belongs to a worker that fell behind, not to a slow link.
inline constexpr size_t kTimedRounds = 8;

struct UpdateTime {
  absl::Duration since_open;
  std::optional<absl::Duration> lateness;  // since the round was over; set when it was
};

class UpdateTimes {
 public:
  void Open(RoundId round, absl::Duration now);
  // The open round is over.
  void Close(absl::Duration now);
  // The last byte of the worker's update came, or was refused because it was late. Not set: this worker's update of that
  // round was timed before, or the round is too old or not known.
  std::optional<UpdateTime> Arrived(RoundId round, absl::string_view worker, absl::Duration now);

 private:
  struct Entry {
    RoundId round;
    absl::Duration opened_at;
    std::optional<absl::Duration> closed_at = std::nullopt;
    std::set<std::string, std::less<>> timed = {};
  };
  std::deque<Entry> rounds_;  // ascending
};

}  // namespace distro::server
