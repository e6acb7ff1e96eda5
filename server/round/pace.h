// Statistics of the last rounds: the deadline of the next one, the times of workers' updates, and
// the growth of the log. Bounded in memory; times are monotonic and passed in.
//
// Not thread-safe: their owner (RunWorkers) is guarded by the mutex of SharedRun.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace distro::server {

// How many rounds back a late update is timed; an older one means that the worker fell behind, not
// that its link is slow.
inline constexpr size_t kTimedRounds = 8;

struct UpdateTime {
  absl::Duration since_open;
  std::optional<absl::Duration> lateness;  // since the round was over; set when it was
};

// Measures when workers' updates arrive, from Open to the last byte, including late ones: the input
// of the adaptive deadline. Each worker counts once per round.
class UpdateTimes {
 public:
  void Open(RoundId round, absl::Duration now);
  // The open round is over.
  void Close(absl::Duration now);
  // The last byte of the worker's update arrived, or was refused as late. Returns nullopt if this
  // update was timed before, or the round is too old or unknown.
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

// Rounds whose times count: few, so that the deadline adapts to a slower link within a round or
// two.
inline constexpr size_t kDeadlineRounds = 16;

// A round's deadline (docs/protocol.md, "Times"): 1.5 times the 90th percentile of the times from
// Open to a worker's last byte, late ones included, within two bounds.
class AdaptiveDeadline {
 public:
  // Requires 0 < shortest <= longest; longest may be infinite: then there is no deadline.
  AdaptiveDeadline(absl::Duration shortest, absl::Duration longest)
      : shortest_(shortest), longest_(longest) {}

  // A worker's update of `round` arrived this long after Open. At most once per worker and round;
  // rounds older than the last kDeadlineRounds are ignored.
  void Add(RoundId round, absl::Duration since_open);

  // From Open: clamp(1.5 * p90, shortest, longest), p90 being the smallest time that at least 90 %
  // do not exceed; `longest` while no time is known.
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

// Number of committed rounds in the mean.
inline constexpr size_t kLogRateRounds = 64;

// A link must be this much faster than the log grows. At 10 % a worker gains six minutes on the log
// per hour; with less, a short stall of the link would undo the progress.
inline constexpr double kCatchUpMargin = 1.1;

// Measures how fast the log grows, and whether a link can keep up with it (docs/protocol.md,
// "Joining").
class LogRate {
 public:
  // Adds a committed round: the bytes of its results, and the time from Open to commit.
  void Add(uint64_t result_bytes, absl::Duration duration);

  // Mean result bytes over mean duration of the last rounds; 0: not known yet.
  uint64_t BytesPerSecond() const;

  // Means over the last rounds; 0 where none is known.
  uint64_t MeanResultBytes() const { return rounds_.empty() ? 0 : bytes_ / rounds_.size(); }
  absl::Duration MeanDuration() const {
    return rounds_.empty() ? absl::ZeroDuration()
                           : duration_ / static_cast<int64_t>(rounds_.size());
  }

  // Whether a link of this rate can catch up. True if either rate is 0 (unknown).
  bool CanFollow(uint64_t download_bytes_per_second) const;

 private:
  struct Entry {
    uint64_t bytes;
    absl::Duration duration;
  };
  std::deque<Entry> rounds_;
  uint64_t bytes_ = 0;
  absl::Duration duration_;
};

}  // namespace distro::server
