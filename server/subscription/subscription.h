// Reads frames from the log and the ring for one subscriber, and remembers damaged records.
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

// Records of the log that a reader found damaged. The aggregator verifies only the newest payloads
// at start, so other damage shows when a record is read. It is logged once per record, however
// often followers retry, until the record is read without damage.
//
// Thread-safe.
class DamagedRecords {
 public:
  // `log` is borrowed.
  explicit DamagedRecords(Log* log) : log_(log) {}

  // A reader found `damage`, whose message names the file, in the record of `round`. Returns the
  // status for a peer: DataLoss "damaged", without a path.
  absl::Status Found(RoundId round, const absl::Status& damage);
  // Every payload of the record was read without damage.
  void ReadWhole(RoundId round);

  // The first one at or after `from`.
  std::optional<RoundId> FirstFrom(RoundId from) const;
  // The number of damaged records for which `counts` returns true; it must not call back.
  uint64_t Count(absl::FunctionRef<bool(RoundId)> counts) const;

 private:
  Log* const log_;
  mutable absl::Mutex mu_;
  std::set<RoundId> rounds_ ABSL_GUARDED_BY(mu_);
};

// Whether results from `from` on can be sent. FailedPrecondition "pruned": they were dropped, or
// one is damaged and a later snapshot replaces it.
absl::Status CheckServable(RoundId from, const RoundLog& log, const DamagedRecords& damaged,
                           const SnapshotStore& snapshots);

// A cursor that returns serialized frames: recent ones from the ring, older ones from the log. It
// holds at most one frame. Payloads from the log are verified while they are read: the last frame
// of a damaged one is not returned.
//
// Not thread-safe: used by the writer of the stream.
class Subscription {
 public:
  // All are borrowed and outlive the subscription. It starts with the first frame of `from`, and
  // can be closed at once: the caller holds the lock under which it checked that this worker may
  // subscribe.
  Subscription(std::shared_ptr<Subscriber> subscriber, Broadcast* broadcast, const RoundLog* log,
               DamagedRecords* damaged, const Layout& layout, EpochId epoch, RoundId from);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Sets the listener to wake when there may be more. Called once, before Next().
  void Listen(std::weak_ptr<Listener> listener);

  // The next frame, or nullptr if there is none yet and a Wake will follow. Blocks for disk reads.
  // OutOfRange: the run is done and everything was sent. Other errors end the subscription;
  // DataLoss "damaged": the next round's record cannot be read.
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
  std::optional<VerifiedPayload> payload_;      // of record_, while a segment of it is sent
  uint32_t verified_ = 0;                       // segments of record_
};

}  // namespace distro::server
