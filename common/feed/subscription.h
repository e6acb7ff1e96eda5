// One subscriber's frames: from the stored records, then from the ring.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/feed/broadcast.h"
#include "common/feed/record_source.h"
#include "common/feed/verified_payload.h"
#include "distro/v1/round.pb.h"

namespace distro {

// A cursor that returns serialized frames: recent ones from the ring, older ones from their
// records. It holds at most one frame. Payloads of records are verified while they are read: the
// last frame of a damaged one is not returned.
//
// Not thread-safe: used by the writer of the stream.
class Subscription {
 public:
  // `broadcast` is borrowed; `segments` is the layout's. Starts with the first frame of `from`, and
  // can be closed at once: the caller holds the lock under which it checked that this worker may
  // subscribe.
  Subscription(std::shared_ptr<Subscriber> subscriber, Broadcast* broadcast,
               std::unique_ptr<const RecordSource> records, uint32_t segments, EpochId epoch,
               RoundId from);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Sets the listener to wake when there may be more. Called once, before Next().
  void Listen(std::weak_ptr<Listener> listener);

  // The next frame, or nullptr if there is none yet and a Wake will follow. Blocks for disk reads.
  // OutOfRange: the run is done and everything was sent. Other errors end the subscription,
  // those of RecordSource among them.
  absl::StatusOr<SharedBytes> Next();

 private:
  absl::StatusOr<SharedBytes> NextFromRecord();
  absl::Status OpenRecord();
  absl::StatusOr<SharedBytes> NextSegmentFrame(SegmentId segment, uint64_t* sent);
  SharedBytes NextObject(SegmentId segment, uint64_t* sent) const;
  SharedBytes EndRecord();

  // Constant after construction.
  const std::shared_ptr<Subscriber> subscriber_;
  Broadcast* const broadcast_;
  const std::unique_ptr<const RecordSource> records_;
  const EpochId epoch_;

  Cursor cursor_;
  std::shared_ptr<const StoredRecord> record_;  // of cursor_.round, while its frames come from it
  std::optional<VerifiedPayload> payload_;      // of record_, while a segment of it is sent
  v1::RoundHeader header_;                      // of record_, where the subscriber gets objects
  uint32_t verified_ = 0;                       // segments of record_
};

}  // namespace distro
