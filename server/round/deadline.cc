#include "server/round/deadline.h"

#include <algorithm>

namespace distro::server {

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

}  // namespace distro::server
