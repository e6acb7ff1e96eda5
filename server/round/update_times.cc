#include "server/round/update_times.h"

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

}  // namespace distro::server
