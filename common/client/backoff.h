// Delays between attempts: exponential with jitter, so that the workers of a restarted aggregator
// do not all come back in the same instant. Pure: the same seed gives the same delays; nothing
// waits here.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/base/reason.h"

namespace distro {

struct BackoffOptions {
  // Longest first delay. Above 0; a larger value loads a restarted aggregator less and resumes
  // later.
  absl::Duration initial = absl::Milliseconds(200);
  // Longest delay of all. At least `initial`.
  absl::Duration max = absl::Seconds(10);
};

class Backoff {
 public:
  Backoff(const BackoffOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

  // The delay before the next attempt: uniform in [d/2, d), d = min(initial * 2^attempts, max).
  absl::Duration Next() {
    const absl::Duration longest =
        std::min(options_.initial * std::exp2(std::min(attempts_, 60)), options_.max);
    ++attempts_;
    const double uniform =
        static_cast<double>(SplitMix64(seed_, drawn_++) >> 11) * 0x1p-53;  // [0, 1)
    return longest * (0.5 + 0.5 * uniform);
  }

  // An attempt succeeded: the next delay is a first one again.
  void Reset() { attempts_ = 0; }

 private:
  const BackoffOptions options_;
  const uint64_t seed_;
  uint64_t drawn_ = 0;
  int attempts_ = 0;
};

// The delay before the next attempt after a call that ended with `status`: the time that the status
// asks to wait, plus the backoff's, so that clients that were all told the same time do not return
// at the same instant.
inline absl::Duration DelayAfter(const absl::Status& status, Backoff* backoff) {
  return RetryAfterOf(status).value_or(absl::ZeroDuration()) + backoff->Next();
}

}  // namespace distro
