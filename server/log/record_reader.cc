#include "server/log/record_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro::server {

absl::StatusOr<std::shared_ptr<const RecordReader>> RecordReader::Open(const std::string& path,
                                                                       RecordKind kind) {
  DISTRO_ASSIGN_OR_RETURN(LogFile file, LogFile::Open(path));
  std::shared_ptr<RecordReader> reader(new RecordReader(std::move(file)));
  absl::Status status = reader->Load(kind);
  if (!status.ok()) return Annotate(status, path);
  return std::shared_ptr<const RecordReader>(std::move(reader));
}

absl::Status RecordReader::Load(RecordKind expected) {
  DISTRO_ASSIGN_OR_RETURN(file_bytes_, file_.Size());
  if (file_bytes_ < kRecordPrefixBytes + kRecordFooterBytes) {
    return absl::DataLossError(absl::StrCat("has only ", file_bytes_, " bytes"));
  }
  DISTRO_ASSIGN_OR_RETURN(const std::string prefix, file_.ReadAt(0, kRecordPrefixBytes));
  const uint64_t footer_at = file_bytes_ - kRecordFooterBytes;
  DISTRO_ASSIGN_OR_RETURN(const std::string footer, file_.ReadAt(footer_at, kRecordFooterBytes));
  DISTRO_ASSIGN_OR_RETURN(footer_, ParseRecordFooter(prefix, footer, file_bytes_));
  if (footer_.kind != expected && !(pruned() && expected == RecordKind::kRound)) {
    return absl::DataLossError("is a record of another kind");
  }
  const uint64_t header_at = footer_at - footer_.header_bytes;
  const uint64_t table_bytes = footer_.segments * kRecordTableEntryBytes;
  const uint64_t table_at = header_at - table_bytes;
  DISTRO_ASSIGN_OR_RETURN(header_, file_.ReadAt(header_at, footer_.header_bytes));
  if (Xxh3(header_) != footer_.header_checksum) {
    return absl::DataLossError("the header's checksum does not match");
  }
  DISTRO_ASSIGN_OR_RETURN(const std::string table, file_.ReadAt(table_at, table_bytes));
  DISTRO_ASSIGN_OR_RETURN(entries_, ParseRecordTable(table, footer_, table_at));
  if (packed()) return CheckPack();
  if (pruned() && segments() != 0) return absl::DataLossError("is pruned, but has payloads");
  return absl::OkStatus();
}

absl::Status RecordReader::CheckPack() const {
  if (segments() == 0) return absl::DataLossError("is a pack of no rounds");
  if (!header_.empty()) return absl::DataLossError("is a pack, but has a header of its own");
  if (end() > round()) return absl::OkStatus();
  return absl::DataLossError("is a pack of rounds that do not exist");
}

absl::StatusOr<std::string> RecordReader::HeaderOf(RoundId round) const {
  if (!packed()) return header_;
  const SegmentId place(static_cast<uint32_t>(round.value() - footer_.round));
  DISTRO_ASSIGN_OR_RETURN(std::string header, Read(place, 0, payload_bytes(place)));
  if (Xxh3(header) == ChainHashOf(round)) return header;
  return absl::DataLossError(absl::StrCat(file_.path(), ": the checksum of the header of round ",
                                          round.value(), " does not match"));
}

uint64_t RecordReader::ChainHashOf(RoundId round) const {
  return packed() ? entries_[round.value() - footer_.round].checksum : chain_hash();
}

absl::StatusOr<std::string> RecordReader::Read(SegmentId segment, uint64_t offset,
                                               uint64_t size) const {
  const RecordEntry& entry = entries_[segment.value()];
  if (offset > entry.bytes || size > entry.bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat(file_.path(), ": segment ", segment.value(),
                                                   ": ", size, " bytes from ", offset,
                                                   " on are not within its ", entry.bytes));
  }
  return file_.ReadAt(entry.offset + offset, size);
}

absl::Status RecordReader::CheckChecksum(SegmentId segment, uint64_t checksum) const {
  if (checksum == entries_[segment.value()].checksum) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(file_.path(), ": the checksum of segment ", segment.value(), " does not match"));
}

absl::Status RecordReader::VerifyPayloads() const {
  for (uint32_t i = 0; i < segments(); ++i) {
    const SegmentId segment(i);
    DISTRO_ASSIGN_OR_RETURN(const std::string payload, Read(segment, 0, payload_bytes(segment)));
    DISTRO_RETURN_IF_ERROR(CheckChecksum(segment, Xxh3(payload)));
  }
  return absl::OkStatus();
}

}  // namespace distro::server
