// Where a subscription reads the rounds that are no longer in the ring: an aggregator's log, or
// whatever else keeps the records of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace distro {

// One round's record, open for reading. Immutable, thread-safe. Blocking.
class StoredRecord {
 public:
  virtual ~StoredRecord() = default;

  // The serialized header.
  virtual const std::string& header_bytes() const = 0;
  virtual uint32_t segments() const = 0;
  // Requires segment < segments(), here and below.
  virtual uint64_t payload_bytes(SegmentId segment) const = 0;
  // Reads bytes [offset, offset + size) of a segment's payload without a check (VerifiedPayload
  // checks). DataLoss: there are fewer than the record says. InvalidArgument: the range is not
  // within the payload.
  virtual absl::StatusOr<std::string> Read(SegmentId segment, uint64_t offset,
                                           uint64_t size) const = 0;
  // OK if `checksum` is the XXH3-64 of the segment's payload, else DataLoss.
  virtual absl::Status CheckChecksum(SegmentId segment, uint64_t checksum) const = 0;
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // The record of a committed round. An error is for the subscriber, and ends the subscription.
  virtual absl::StatusOr<std::shared_ptr<const StoredRecord>> Open(RoundId round) const = 0;
  // Reading a payload reported `damage`, a DataLoss; returns the status for the subscriber.
  virtual absl::Status FoundDamage(RoundId round, const absl::Status& damage) const = 0;
  // Every payload of the record was read without damage.
  virtual void ReadWhole(RoundId round) const = 0;
};

}  // namespace distro
