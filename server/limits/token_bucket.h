// A rate with bursts: so many bytes (or calls) a second, and what was not used before up to a
// burst. The caller has the clock. Not thread-safe.
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

  // Takes `bytes` if they are there: 0. Otherwise takes nothing: the time until they will be.
  // Requires bytes <= burst.
  absl::Duration Take(uint64_t bytes, absl::Duration now) {
    tokens_ = TokensAt(now);
    at_ = now;
    const double wanted = static_cast<double>(bytes);
    if (tokens_ < wanted) return absl::Seconds((wanted - tokens_) / per_second_);
    tokens_ -= wanted;
    return absl::ZeroDuration();
  }

  // Takes `bytes` whether they are there or not: what is missing is a debt, which the rate pays.
  void Charge(uint64_t bytes, absl::Duration now) {
    tokens_ = TokensAt(now) - static_cast<double>(bytes);
    at_ = now;
  }
  // Of what was charged.
  void GiveBack(uint64_t bytes, absl::Duration now) {
    tokens_ = std::min(burst_, TokensAt(now) + static_cast<double>(bytes));
    at_ = now;
  }
  // Nothing is there, or a debt.
  bool Empty(absl::Duration now) const { return TokensAt(now) <= 0; }

  // Nothing is lost by forgetting a full one.
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
