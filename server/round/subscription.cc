#include "server/round/subscription.h"

#include <algorithm>
#include <utility>

#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/rpc/frames.h"
#include "server/round/round_frames.h"

namespace distro::server {

Subscription::Subscription(std::shared_ptr<Subscriber> subscriber, Broadcast* broadcast,
                           const RoundLog* log, const Layout& layout, EpochId epoch, RoundId from)
    : subscriber_(std::move(subscriber)), broadcast_(broadcast), log_(log), epoch_(epoch) {
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
  if (found.kind == RingLookup::kInLog) return NextFromLog();
  record_ = nullptr;
  return std::move(found.frame.bytes);
}

absl::StatusOr<SharedBytes> Subscription::NextFromLog() {
  if (record_ == nullptr) {
    auto record = log_->OpenRecord(cursor_.round);
    if (ReasonOf(record.status()) == "pruned") {  // OutOfRange would say that all was sent
      return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "pruned",
                             record.status().message());
    }
    DISTRO_ASSIGN_OR_RETURN(record_, std::move(record));
  }
  for (uint32_t s = 0; s < cursor_.segment_bytes.size(); ++s) {
    uint64_t& sent = cursor_.segment_bytes[s];
    const uint64_t total = record_->payload_bytes(SegmentId(s));
    if (sent == total) continue;
    const uint64_t size = FrameBytes(sent, total);
    DISTRO_ASSIGN_OR_RETURN(std::string data, record_->Read(SegmentId(s), sent, size));
    RoundFrame frame = MakeSegmentFrame(epoch_, cursor_.round, SegmentId(s), sent, total, data);
    sent += size;
    return std::move(frame.bytes);
  }
  RoundFrame frame = MakeCommitFrame(epoch_, cursor_.round, record_->header_bytes());
  cursor_.round = cursor_.round.Next();
  cursor_.index = 0;
  std::ranges::fill(cursor_.segment_bytes, 0);
  record_ = nullptr;
  return std::move(frame.bytes);
}

}  // namespace distro::server
