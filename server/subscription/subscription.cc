#include "server/subscription/subscription.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/wire/frames.h"
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

Subscription::Subscription(std::shared_ptr<Subscriber> subscriber, Broadcast* broadcast,
                           const RoundLog* log, DamagedRecords* damaged, const Layout& layout,
                           EpochId epoch, RoundId from)
    : subscriber_(std::move(subscriber)),
      broadcast_(broadcast),
      log_(log),
      damaged_(damaged),
      epoch_(epoch) {
  cursor_.round = from;
  cursor_.segment_bytes.resize(layout.segments());
  subscriber_->round = from.value();
  broadcast_->Add(subscriber_);
}

Subscription::~Subscription() { broadcast_->Remove(subscriber_.get()); }

void Subscription::Listen(std::weak_ptr<Listener> listener) {
  broadcast_->Listen(subscriber_.get(), std::move(listener));
}

absl::StatusOr<SharedBytes> Subscription::Next() {
  DISTRO_ASSIGN_OR_RETURN(RingLookup found, broadcast_->Next(*subscriber_, &cursor_));
  subscriber_->round.store(cursor_.round.value(), std::memory_order_relaxed);
  if (found.kind == RingLookup::kInLog) {
    absl::StatusOr<SharedBytes> frame = NextFromLog();
    if (absl::IsDataLoss(frame.status())) return damaged_->Found(cursor_.round, frame.status());
    return frame;
  }
  payload_.reset();
  record_ = nullptr;
  return std::move(found.frame.bytes);
}

absl::StatusOr<SharedBytes> Subscription::NextFromLog() {
  if (record_ == nullptr) DISTRO_RETURN_IF_ERROR(OpenRecord());
  for (uint32_t s = 0; s < cursor_.segment_bytes.size(); ++s) {
    uint64_t& sent = cursor_.segment_bytes[s];
    if (sent < record_->payload_bytes(SegmentId(s))) return NextSegmentFrame(SegmentId(s), &sent);
  }
  return EndRecord();
}

absl::Status Subscription::OpenRecord() {
  auto record = log_->OpenRecord(cursor_.round);
  if (ReasonOf(record.status()) == "pruned") {  // OutOfRange would say that all was sent
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned",
                           record.status().message());
  }
  DISTRO_ASSIGN_OR_RETURN(record_, std::move(record));
  verified_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<SharedBytes> Subscription::NextSegmentFrame(SegmentId segment, uint64_t* sent) {
  if (!payload_) payload_.emplace(record_, segment, *sent);
  const uint64_t total = record_->payload_bytes(segment);
  const uint64_t size = FrameBytes(*sent, total);
  const absl::StatusOr<std::string> data = payload_->Read(size);
  if (!data.ok()) return RoundDamage(data.status(), cursor_.round);
  RoundFrame frame = MakeSegmentFrame(epoch_, cursor_.round, segment, *sent, total, *data);
  *sent += size;
  if (payload_->done()) {
    payload_.reset();
    ++verified_;
  }
  return std::move(frame.bytes);
}

SharedBytes Subscription::EndRecord() {
  if (verified_ == record_->segments()) damaged_->ReadWhole(cursor_.round);
  RoundFrame frame = MakeCommitFrame(epoch_, cursor_.round, record_->header_bytes());
  cursor_.round = cursor_.round.Next();
  cursor_.index = 0;
  std::ranges::fill(cursor_.segment_bytes, 0);
  record_ = nullptr;
  return std::move(frame.bytes);
}

}  // namespace distro::server
