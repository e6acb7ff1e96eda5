// How fast the log grows, and whether a link could keep up with it (docs/protocol.md, "Joining"). Pure.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace distro::server {

// Committed rounds that the mean is taken over.
inline constexpr size_t kLogRateRounds = 64;

// A link must be this much faster than the log. Who is only 10 % faster gains six minutes on the log in an hour; who has
// less margin catches up with the first hiccup of the link only in theory.
inline constexpr double kCatchUpMargin = 1.1;

class LogRate {
 public:
  // A round was committed: bytes of its results, Open to commit.
  void Add(uint64_t result_bytes, absl::Duration duration);

  // Mean result bytes over mean duration of the last rounds; 0: not known yet.
  uint64_t BytesPerSecond() const;

  // Means over the last rounds; 0 where none is known.
  uint64_t MeanResultBytes() const { return rounds_.empty() ? 0 : bytes_ / rounds_.size(); }
  absl::Duration MeanDuration() const {
    return rounds_.empty() ? absl::ZeroDuration()
                           : duration_ / static_cast<int64_t>(rounds_.size());
  }

  // Whether a link of that many bytes a second could catch up. True when either rate is 0 (not known).
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
