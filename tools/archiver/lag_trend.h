// Judges whether a follower keeps up, by how its lag in rounds changes over a minute. Pure; not
// thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "absl/time/time.h"

namespace distro::tools {

enum class Pace { kKeepsUp, kCatchesUp, kFallsBehind };

struct LagJudgement {
  Pace pace = Pace::kKeepsUp;
  std::string reason;  // for people
};

class LagTrend {
 public:
  // A follower with at most this lag keeps up.
  static constexpr uint64_t kFewRounds = 2;
  static constexpr absl::Duration kWindow = absl::Minutes(1);

  // Adds a reading, in the order of monotonic time; `lag` is in rounds. "Falls behind" needs a
  // whole window: the lag is above kFewRounds and larger than at the window's start.
  LagJudgement Add(absl::Duration now, uint64_t lag);

 private:
  struct Reading {
    absl::Duration at;
    uint64_t lag = 0;
  };
  std::deque<Reading> readings_;  // of the last window, and the one before it
};

}  // namespace distro::tools
