// Records of the log in which somebody who reads it met damage. A start verifies the newest
// payloads only, so damage of an older one shows when it is read; it is told once a record, however
// often followers try, until the record was read whole again.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/base/log.h"

namespace distro::server {

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

}  // namespace distro::server
