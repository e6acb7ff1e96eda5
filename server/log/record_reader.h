// An open record: its header in memory, payloads read from the file. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/feed/record_source.h"
#include "server/log/log_file.h"
#include "server/log/record_format.h"

namespace distro::server {

class RecordReader final : public StoredRecord {
 public:
  // Checks everything except the payloads' bytes and the meaning of the header. `kind` is kStart or
  // kRound, which includes pruned rounds and packs of them. DataLoss names the file and the damaged
  // part. FailedPrecondition: of a newer version.
  static absl::StatusOr<std::shared_ptr<const RecordReader>> Open(const std::string& path,
                                                                  RecordKind kind);

  const std::string& path() const { return file_.path(); }
  // The rounds [round(), end()): more than one only in a pack.
  RoundId round() const { return RoundId(footer_.round); }
  RoundId end() const { return RoundId(footer_.round + (packed() ? entries_.size() : 1)); }
  // Whether the payloads were dropped.
  bool pruned() const { return footer_.kind == RecordKind::kPruned || packed(); }
  // Whether this is a pack: then the payloads below are the headers of its rounds.
  bool packed() const { return footer_.kind == RecordKind::kPack; }
  // Requires round() <= round < end(). DataLoss: the header of a pack differs from its checksum.
  absl::StatusOr<std::string> HeaderOf(RoundId round) const;
  // XXH3-64 of HeaderOf(round).
  uint64_t ChainHashOf(RoundId round) const;
  // Empty in a pack.
  const std::string& header_bytes() const override { return header_; }
  // XXH3-64 of header_bytes().
  uint64_t chain_hash() const { return footer_.header_checksum; }
  uint64_t file_bytes() const { return file_bytes_; }

  // 0 in a pruned record; in a pack the number of its rounds.
  uint32_t segments() const override { return footer_.segments; }
  const std::vector<RecordEntry>& entries() const { return entries_; }
  // Requires segment < segments().
  uint64_t payload_bytes(SegmentId segment) const override {
    return entries_[segment.value()].bytes;
  }
  absl::StatusOr<std::string> Read(SegmentId segment, uint64_t offset,
                                   uint64_t size) const override;

  // DataLoss names file and segment.
  absl::Status CheckChecksum(SegmentId segment, uint64_t checksum) const override;

  // Reads every payload, one at a time. DataLoss: a checksum does not match.
  absl::Status VerifyPayloads() const;

 private:
  explicit RecordReader(LogFile file) : file_(std::move(file)) {}
  absl::Status Load(RecordKind expected);
  absl::Status CheckPack() const;

  // Constant after Open.
  const LogFile file_;
  uint64_t file_bytes_ = 0;
  RecordFooter footer_;
  std::vector<RecordEntry> entries_;
  std::string header_;
};

}  // namespace distro::server
