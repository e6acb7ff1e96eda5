#include "server/log/served_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "server/log/record_format.h"

namespace distro::server {
namespace {

absl::Status Pruned(RoundId round, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned",
                         absl::StrCat("round ", round.value(), ": ", why));
}

}  // namespace

absl::Status DamagedRecords::Found(RoundId round, const absl::Status& damage) {
  {
    absl::MutexLock lock(&mu_);
    if (rounds_.insert(round).second) {
      log_->Error(
          "record damaged: subscribers that need it wait until it is restored, or join again "
          "from a later snapshot",
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

absl::Status CheckServable(RoundId from, const RoundLog& log, const DamagedRecords& damaged,
                           const SnapshotStore& snapshots) {
  if (const RoundId first = log.first_round(); from < first) {
    return Pruned(
        from, absl::StrCat("the log begins with round ", first.value(), ": begin from a snapshot"));
  }
  const std::optional<RoundId> unreadable = damaged.FirstFrom(from);
  if (!unreadable) return absl::OkStatus();
  const RoundId newest(snapshots.List().front().round());
  if (newest <= *unreadable) return absl::OkStatus();
  return Pruned(*unreadable, absl::StrCat("its record is damaged: begin from the snapshot before "
                                          "round ",
                                          newest.value()));
}

absl::StatusOr<std::shared_ptr<const StoredRecord>> ServedLog::Open(RoundId round) const {
  auto record = log_->OpenRecord(round);
  if (ReasonOf(record.status()) == "pruned")  // OutOfRange would say that all was sent
    return Pruned(round, record.status().message());
  if (absl::IsDataLoss(record.status())) return damaged_->Found(round, record.status());
  return record;
}

absl::Status ServedLog::FoundDamage(RoundId round, const absl::Status& damage) const {
  return damaged_->Found(round, RoundDamage(damage, round));
}

}  // namespace distro::server
