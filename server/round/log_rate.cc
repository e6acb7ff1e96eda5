#include "server/round/log_rate.h"

#include <algorithm>

namespace distro::server {

void LogRate::Add(uint64_t result_bytes, absl::Duration duration) {
  rounds_.push_back({result_bytes, std::max(duration, absl::ZeroDuration())});
  bytes_ += rounds_.back().bytes;
  duration_ += rounds_.back().duration;
  if (rounds_.size() <= kLogRateRounds) return;
  bytes_ -= rounds_.front().bytes;
  duration_ -= rounds_.front().duration;
  rounds_.pop_front();
}

uint64_t LogRate::BytesPerSecond() const {
  if (duration_ <= absl::ZeroDuration()) return 0;
  return static_cast<uint64_t>(static_cast<double>(bytes_) / absl::ToDoubleSeconds(duration_));
}

bool LogRate::CanFollow(uint64_t download_bytes_per_second) const {
  if (download_bytes_per_second == 0) return true;
  return static_cast<double>(download_bytes_per_second) >=
         kCatchUpMargin * static_cast<double>(BytesPerSecond());
}

}  // namespace distro::server
