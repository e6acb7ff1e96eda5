// One subscriber's way through the log and the ring, and the records that were found damaged on
// such ways.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "common/layout/layout.h"
#include "server/log/round_log.h"
#include "server/log/snapshot_store.h"
#include "server/log/verified_payload.h"
#include "server/subscription/broadcast.h"

namespace distro::server {

// Records of the log in which somebody who reads it met damage. A start verifies the newest
// payloads only, so damage of an older one shows when it is read; it is told once a record, however
// often followers try, until the record was read whole again.
//
// Thread-safe.
class DamagedRecords {
 public:
  // `log` is borrowed.
  explicit DamagedRecords(Log* log) : log_(log) {}

  // Somebody met `damage`, which names the file, in the record of `round`. Returns what a peer is
  // told: DataLoss "damaged", no path.
  absl::Status Found(RoundId round, const absl::Status& damage);
  // Every payload of it was read and is good.
  void ReadWhole(RoundId round);

  // The first one at or after `from`.
  std::optional<RoundId> FirstFrom(RoundId from) const;
  // How many there are for which `counts`, which must not call back.
  uint64_t Count(absl::FunctionRef<bool(RoundId)> counts) const;

 private:
  Log* const log_;
  mutable absl::Mutex mu_;
  std::set<RoundId> rounds_ ABSL_GUARDED_BY(mu_);
};

// Whether results from `from` on can be sent. FailedPrecondition "pruned": they are gone, or one is
// damaged and a later snapshot makes it needless.
absl::Status CheckServable(RoundId from, const RoundLog& log, const DamagedRecords& damaged,
                           const SnapshotStore& snapshots);

// A cursor that hands out serialized frames. What is in the ring comes from memory, what is older
// from the log, one frame at a time; so it holds at most one frame and never a round. What comes
// from the log is verified on the way: of a damaged payload the last frame is not handed out.
//
// Not thread-safe: one frame at a time, by whoever writes the stream.
class Subscription {
 public:
  // All are borrowed and outlive the subscription. It begins with the first frame of `from`, and
  // can be closed from now on: who checked that this worker may subscribe holds the lock under
  // which that changes.
  Subscription(std::shared_ptr<Subscriber> subscriber, Broadcast* broadcast, const RoundLog* log,
               DamagedRecords* damaged, const Layout& layout, EpochId epoch, RoundId from);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Who is woken when there may be more. Called once, before Next().
  void Listen(std::weak_ptr<Listener> listener);

  // The next frame; null: nothing yet, a Wake will come. OutOfRange: the run is done and all of it
  // was sent. Blocks for disk reads. Other errors: the subscription is over; DataLoss "damaged":
  // the next round's record cannot be read.
  absl::StatusOr<SharedBytes> Next();

 private:
  absl::StatusOr<SharedBytes> NextFromLog();
  absl::Status OpenRecord();
  absl::StatusOr<SharedBytes> NextSegmentFrame(SegmentId segment, uint64_t* sent);
  SharedBytes EndRecord();

  // Constant after construction.
  const std::shared_ptr<Subscriber> subscriber_;
  Broadcast* const broadcast_;
  const RoundLog* const log_;
  DamagedRecords* const damaged_;
  const EpochId epoch_;

  Cursor cursor_;
  std::shared_ptr<const RecordReader> record_;  // of cursor_.round, while it comes from the log
  std::optional<VerifiedPayload> payload_;      // of record_, while a segment of it is under way
  uint32_t verified_ = 0;                       // segments of record_
};

}  // namespace distro::server
