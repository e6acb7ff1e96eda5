#include "server/subscription/damaged_records.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro::server {

absl::Status DamagedRecords::Found(RoundId round, const absl::Status& damage) {
  {
    absl::MutexLock lock(&mu_);
    if (rounds_.insert(round).second) {
      log_->Error("record damaged: who needs it waits for the file, or for a snapshot after it",
                  {{"round", round.value()}, {"error", damage}});
    }
  }
  return ErrorWithReason(absl::StatusCode::kDataLoss, "damaged",
                         absl::StrCat("round ", round.value(),
                                      ": its record is damaged: an operator must restore it"));
}

void DamagedRecords::ReadWhole(RoundId round) {
  absl::MutexLock lock(&mu_);
  if (rounds_.erase(round) > 0) log_->Info("record whole again", {{"round", round.value()}});
}

std::optional<RoundId> DamagedRecords::FirstFrom(RoundId from) const {
  absl::MutexLock lock(&mu_);
  const auto found = rounds_.lower_bound(from);
  return found == rounds_.end() ? std::nullopt : std::optional<RoundId>(*found);
}

uint64_t DamagedRecords::Count(absl::FunctionRef<bool(RoundId)> counts) const {
  absl::MutexLock lock(&mu_);
  return static_cast<uint64_t>(std::ranges::count_if(rounds_, counts));
}

}  // namespace distro::server
