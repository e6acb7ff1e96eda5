// Reads a segment's result while a client takes it: from memory while its round is open, then from
// its record. So a client that reads slowly keeps no bytes in memory that nobody else needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/shared_bytes.h"
#include "common/feed/record_source.h"
#include "server/round/round_manager.h"

namespace distro::server {

// For one client. Not thread-safe. Blocking.
class ResultReader {
 public:
  using Found = RoundManager::FoundResult;
  // As RoundManager::FindResult of the same result each time.
  using Find = std::function<absl::StatusOr<Found>()>;

  ResultReader(SegmentId segment, Find find) : segment_(segment), find_(std::move(find)) {}

  // Finds the result; returns its size. The statuses of `find`.
  absl::StatusOr<uint64_t> Open();
  // Requires Open and a range within the result. The statuses of `find` and of a record.
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size);
  // The record that it reads; null while the round is open.
  const std::shared_ptr<const StoredRecord>& record() const { return record_; }

 private:
  // Sets open_ or record_; returns the bytes of the former, else null.
  absl::StatusOr<SharedBytes> Locate();

  const SegmentId segment_;
  const Find find_;
  std::weak_ptr<const std::string> open_;
  std::shared_ptr<const StoredRecord> record_;  // null: the round is open
};

}  // namespace distro::server
