// Reads one payload of a record in pieces, from its front to its end, and verifies it meanwhile:
// returns the last piece only if the checksum of all of them is the record's. So a damaged payload
// is never returned completely, nothing is read twice, and only one piece is in memory.
//
// Not thread-safe. Blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/feed/record_source.h"

namespace distro {

class VerifiedPayload {
 public:
  // Starts at `offset`; the bytes before it are read too, for the checksum. Requires segment <
  // record->segments().
  VerifiedPayload(std::shared_ptr<const StoredRecord> record, SegmentId segment, uint64_t offset);

  // Whether the whole payload was returned.
  bool done() const { return at_ == record_->payload_bytes(segment_); }

  // Returns the next `size` bytes. DataLoss: the file has been shortened, or the checksum does not
  // match; names file and segment. InvalidArgument: fewer are left.
  absl::StatusOr<std::string> Read(uint64_t size);

 private:
  absl::StatusOr<std::string> ReadOn(uint64_t size);

  const std::shared_ptr<const StoredRecord> record_;
  const SegmentId segment_;
  const uint64_t offset_;
  uint64_t at_ = 0;  // bytes in checksum_
  Xxh3Stream checksum_;
};

}  // namespace distro
