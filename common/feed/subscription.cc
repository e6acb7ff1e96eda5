#include "common/feed/subscription.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/net/wire/frames.h"

namespace distro {

Subscription::Subscription(std::shared_ptr<Subscriber> subscriber, Broadcast* broadcast,
                           std::unique_ptr<const RecordSource> records, uint32_t segments,
                           EpochId epoch, RoundId from)
    : subscriber_(std::move(subscriber)),
      broadcast_(broadcast),
      records_(std::move(records)),
      epoch_(epoch) {
  cursor_.round = from;
  cursor_.segment_bytes.resize(segments);
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
  if (found.kind == RingLookup::kInLog) return NextFromRecord();
  payload_.reset();
  record_ = nullptr;
  return std::move(found.frame.bytes);
}

absl::StatusOr<SharedBytes> Subscription::NextFromRecord() {
  if (record_ == nullptr) DISTRO_RETURN_IF_ERROR(OpenRecord());
  for (uint32_t s = 0; s < cursor_.segment_bytes.size(); ++s) {
    uint64_t& sent = cursor_.segment_bytes[s];
    if (sent == record_->payload_bytes(SegmentId(s))) continue;
    const bool named = !header_.segments().empty() && !header_.segments(0).sha256().empty();
    if (named && sent == 0) return NextObject(SegmentId(s), &sent);
    return NextSegmentFrame(SegmentId(s), &sent);
  }
  return EndRecord();
}

absl::Status Subscription::OpenRecord() {
  DISTRO_ASSIGN_OR_RETURN(record_, records_->Open(cursor_.round));
  verified_ = 0;
  if (subscriber_->objects) header_.ParseFromString(record_->header_bytes());
  return absl::OkStatus();
}

SharedBytes Subscription::NextObject(SegmentId segment, uint64_t* sent) const {
  const v1::CommittedSegment& listed = header_.segments(segment.value());
  *sent = listed.payload_bytes();
  return MakeObjectFrame(epoch_, cursor_.round, segment, listed.payload_bytes(), listed.sha256())
      .bytes;
}

absl::StatusOr<SharedBytes> Subscription::NextSegmentFrame(SegmentId segment, uint64_t* sent) {
  if (!payload_) payload_.emplace(record_, segment, *sent);
  const uint64_t total = record_->payload_bytes(segment);
  const uint64_t size = FrameBytes(*sent, total);
  const absl::StatusOr<std::string> data = payload_->Read(size);
  if (absl::IsDataLoss(data.status())) return records_->FoundDamage(cursor_.round, data.status());
  if (!data.ok()) return data.status();
  RoundFrame frame = MakeSegmentFrame(epoch_, cursor_.round, segment, *sent, total, *data);
  *sent += size;
  if (payload_->done()) {
    payload_.reset();
    ++verified_;
  }
  return std::move(frame.bytes);
}

SharedBytes Subscription::EndRecord() {
  if (verified_ == record_->segments()) records_->ReadWhole(cursor_.round);
  RoundFrame frame = MakeCommitFrame(epoch_, cursor_.round, record_->header_bytes());
  cursor_.round = cursor_.round.Next();
  cursor_.index = 0;
  std::ranges::fill(cursor_.segment_bytes, 0);
  record_ = nullptr;
  return std::move(frame.bytes);
}

}  // namespace distro
