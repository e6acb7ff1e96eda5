// An open record: its header in memory, payloads read from the file. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/log/log_file.h"
#include "server/log/record_format.h"

namespace distro::server {

class RecordReader {
 public:
  // Checks everything except the payloads' bytes and the meaning of the header. `kind` is kStart or
  // kRound, which includes pruned rounds. DataLoss names the file and the damaged part.
  // FailedPrecondition: of a newer version.
  static absl::StatusOr<std::shared_ptr<const RecordReader>> Open(const std::string& path,
                                                                  RecordKind kind);

  const std::string& path() const { return file_.path(); }
  RoundId round() const { return RoundId(footer_.round); }
  // Whether the payloads were dropped: then segments() is 0.
  bool pruned() const { return footer_.kind == RecordKind::kPruned; }
  const std::string& header_bytes() const { return header_; }
  // XXH3-64 of header_bytes().
  uint64_t chain_hash() const { return footer_.header_checksum; }
  uint64_t file_bytes() const { return file_bytes_; }

  uint32_t segments() const { return footer_.segments; }
  const std::vector<RecordEntry>& entries() const { return entries_; }
  // Requires segment < segments().
  uint64_t payload_bytes(SegmentId segment) const { return entries_[segment.value()].bytes; }
  // Reads bytes [offset, offset + size) of a segment's payload without a check (VerifiedPayload
  // checks). DataLoss: the file has been shortened. InvalidArgument: the range is not within the
  // payload.
  absl::StatusOr<std::string> Read(SegmentId segment, uint64_t offset, uint64_t size) const;

  // OK if `checksum` is that of the segment's payload. DataLoss names file and segment.
  absl::Status CheckChecksum(SegmentId segment, uint64_t checksum) const;

  // Reads every payload, one at a time. DataLoss: a checksum does not match.
  absl::Status VerifyPayloads() const;

 private:
  explicit RecordReader(LogFile file) : file_(std::move(file)) {}
  absl::Status Load(RecordKind expected);

  // Constant after Open.
  const LogFile file_;
  uint64_t file_bytes_ = 0;
  RecordFooter footer_;
  std::vector<RecordEntry> entries_;
  std::string header_;
};

}  // namespace distro::server
