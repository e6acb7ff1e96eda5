// A token bucket: limits bytes (or calls) per second, and allows bursts of unused ones. The caller
// passes the time. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace distro::server {

class TokenBucket {
 public:
  // Full at first. Requires bytes_per_second > 0.
  TokenBucket(uint64_t bytes_per_second, uint64_t burst, absl::Duration now)
      : per_second_(static_cast<double>(bytes_per_second)),
        burst_(static_cast<double>(burst)),
        tokens_(burst_),
        at_(now) {}

  // Takes `bytes` and returns 0 if there are enough; otherwise takes nothing and returns the time
  // until there are. Requires bytes <= burst.
  absl::Duration Take(uint64_t bytes, absl::Duration now) {
    tokens_ = TokensAt(now);
    at_ = now;
    const double wanted = static_cast<double>(bytes);
    if (tokens_ < wanted) return absl::Seconds((wanted - tokens_) / per_second_);
    tokens_ -= wanted;
    return absl::ZeroDuration();
  }

  // Takes `bytes` even if there are too few: the balance becomes negative.
  void Charge(uint64_t bytes, absl::Duration now) {
    tokens_ = TokensAt(now) - static_cast<double>(bytes);
    at_ = now;
  }
  // Returns charged bytes.
  void GiveBack(uint64_t bytes, absl::Duration now) {
    tokens_ = std::min(burst_, TokensAt(now) + static_cast<double>(bytes));
    at_ = now;
  }
  // Whether the balance is 0 or negative.
  bool Empty(absl::Duration now) const { return TokensAt(now) <= 0; }

  // Whether the bucket is full, so that it may be dropped.
  bool Full(absl::Duration now) const { return TokensAt(now) == burst_; }

 private:
  double TokensAt(absl::Duration now) const {
    return std::min(burst_, tokens_ + absl::ToDoubleSeconds(now - at_) * per_second_);
  }

  const double per_second_;
  const double burst_;
  double tokens_;
  absl::Duration at_;
};

}  // namespace distro::server
