// One payload of a record, read from its front to its end in pieces: the last piece is given out
// only when the checksum of all of them is the record's. So nobody gets the whole of a damaged
// payload, nothing is read twice, and no more than a piece is held.
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
#include "server/log/record_reader.h"

namespace distro::server {

class VerifiedPayload {
 public:
  // From `offset` on; what is before it is read too, for the checksum. Requires segment <
  // record->segments().
  VerifiedPayload(std::shared_ptr<const RecordReader> record, SegmentId segment, uint64_t offset);

  // All of it was given out.
  bool done() const { return at_ == record_->payload_bytes(segment_); }

  // The next `size` bytes. DataLoss: the file is shorter than it was, or the checksum does not
  // match; names file and segment. InvalidArgument: fewer are left.
  absl::StatusOr<std::string> Read(uint64_t size);

 private:
  absl::StatusOr<std::string> ReadOn(uint64_t size);

  const std::shared_ptr<const RecordReader> record_;
  const SegmentId segment_;
  const uint64_t offset_;
  uint64_t at_ = 0;  // what is in checksum_
  Xxh3Stream checksum_;
};

}  // namespace distro::server
