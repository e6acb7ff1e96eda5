#include "server/round/pace.h"

#include <algorithm>

namespace distro::server {

void UpdateTimes::Open(RoundId round, absl::Duration now) {
  rounds_.push_back({.round = round, .opened_at = now});
  if (rounds_.size() > kTimedRounds) rounds_.pop_front();
}

void UpdateTimes::Close(absl::Duration now) {
  if (!rounds_.empty()) rounds_.back().closed_at = now;
}

std::optional<UpdateTime> UpdateTimes::Arrived(RoundId round, absl::string_view worker,
                                               absl::Duration now) {
  const auto entry = std::ranges::find(rounds_, round, &Entry::round);
  if (entry == rounds_.end() || !entry->timed.emplace(worker).second) return std::nullopt;
  UpdateTime time{.since_open = now - entry->opened_at, .lateness = std::nullopt};
  if (entry->closed_at) time.lateness = now - *entry->closed_at;
  return time;
}

void AdaptiveDeadline::Add(RoundId round, absl::Duration since_open) {
  auto it = std::ranges::lower_bound(rounds_, round, std::less<>(), &Times::round);
  if (it == rounds_.end() || it->round != round) {
    if (it == rounds_.begin() && rounds_.size() == kDeadlineRounds) return;
    it = rounds_.insert(it, Times{.round = round, .since_open = {}});
  }
  it->since_open.push_back(since_open);
  if (rounds_.size() > kDeadlineRounds) rounds_.pop_front();
}

absl::Duration AdaptiveDeadline::Deadline() const {
  std::vector<absl::Duration> all;
  for (const Times& times : rounds_)
    all.insert(all.end(), times.since_open.begin(), times.since_open.end());
  if (all.empty() || longest_ == absl::InfiniteDuration()) return longest_;
  const size_t rank = (all.size() * 9 + 9) / 10;  // 1 .. size
  const auto p90 = all.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::ranges::nth_element(all, p90);
  return std::clamp(*p90 * 1.5, shortest_, longest_);
}

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
