// The payload rate of the fastest recent transfer in one direction: what the link can do at least. Transfers that are too
// small to tell bandwidth from latency are put together. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace distro {

class LinkRate {
 public:
  void Add(uint64_t bytes, absl::Duration time) {
    bytes_ += bytes;
    time_ += time;
    if (bytes_ < kEnoughBytes || time_ < kEnoughTime) return;
    rates_[next_++ % rates_.size()] = static_cast<double>(bytes_) / absl::ToDoubleSeconds(time_);
    bytes_ = 0;
    time_ = absl::ZeroDuration();
  }
  // Not set before there was enough to tell.
  std::optional<double> bytes_per_second() const {
    const double fastest = *std::ranges::max_element(rates_);
    return fastest > 0 ? std::optional<double>(fastest) : std::nullopt;
  }

 private:
  static constexpr uint64_t kEnoughBytes = 16 << 10;
  static constexpr absl::Duration kEnoughTime = absl::Milliseconds(1);

  std::array<double, 32> rates_{};  // of the last transfers, a ring
  size_t next_ = 0;
  uint64_t bytes_ = 0;
  absl::Duration time_;
};

}  // namespace distro
