// The log as subscriptions read it, and what is known of damage to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/feed/record_source.h"
#include "server/log/round_log.h"
#include "server/log/snapshot_store.h"

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

// Thread-safe.
class ServedLog final : public RecordSource {
 public:
  // Both are borrowed.
  ServedLog(const RoundLog* log, DamagedRecords* damaged) : log_(log), damaged_(damaged) {}

  // FailedPrecondition "pruned": its payloads were dropped. DataLoss "damaged".
  absl::StatusOr<std::shared_ptr<const StoredRecord>> Open(RoundId round) const override;
  absl::Status FoundDamage(RoundId round, const absl::Status& damage) const override;
  void ReadWhole(RoundId round) const override { damaged_->ReadWhole(round); }

 private:
  const RoundLog* const log_;
  DamagedRecords* const damaged_;
};

}  // namespace distro::server
