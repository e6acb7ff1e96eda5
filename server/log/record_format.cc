#include "server/log/record_format.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/net/wire/framed_message.h"

namespace distro::server {
namespace {

constexpr absl::string_view kFirstMagic = "DSTROREC";
constexpr absl::string_view kLastMagic = "DSTROEND";
constexpr uint32_t kVersion = 2;  // the newest that is known

// The version that introduced the kind.
uint32_t VersionOf(RecordKind kind) { return kind == RecordKind::kPack ? 2 : 1; }

absl::StatusOr<RecordKind> KindOf(uint32_t number, uint32_t version) {
  for (const RecordKind kind :
       {RecordKind::kStart, RecordKind::kRound, RecordKind::kPruned, RecordKind::kPack}) {
    if (number == static_cast<uint32_t>(kind) && version == VersionOf(kind)) return kind;
  }
  return absl::DataLossError(absl::StrCat("is a record of an unknown kind, ", number));
}

std::string FooterNumbers(const RecordFooter& footer) {
  std::string bytes;
  AppendLittleEndian(&bytes, footer.round);
  AppendLittleEndian(&bytes, footer.segments);
  AppendLittleEndian(&bytes, footer.header_bytes);
  AppendLittleEndian(&bytes, footer.table_checksum);
  AppendLittleEndian(&bytes, footer.header_checksum);
  return bytes;
}

// Requires bytes of EncodeRecordTable's or the footer's size.
template <typename T>
T At(absl::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

std::string EncodeRecordPrefix(RecordKind kind) {
  std::string bytes(kFirstMagic);
  AppendLittleEndian(&bytes, VersionOf(kind));
  AppendLittleEndian(&bytes, static_cast<uint32_t>(kind));
  return bytes;
}

std::string EncodeRecordTable(const std::vector<RecordEntry>& entries) {
  std::string bytes;
  for (const RecordEntry& entry : entries) {
    AppendLittleEndian(&bytes, entry.offset);
    AppendLittleEndian(&bytes, entry.bytes);
    AppendLittleEndian(&bytes, entry.checksum);
  }
  return bytes;
}

std::string EncodeRecordTail(RecordKind kind, RoundId round,
                             const std::vector<RecordEntry>& entries, absl::string_view header) {
  const std::string table = EncodeRecordTable(entries);
  const std::string numbers = FooterNumbers({.kind = kind,
                                             .round = round.value(),
                                             .segments = static_cast<uint32_t>(entries.size()),
                                             .header_bytes = static_cast<uint32_t>(header.size()),
                                             .table_checksum = Xxh3(table),
                                             .header_checksum = Xxh3(header)});
  std::string checksum;
  AppendLittleEndian(&checksum, Xxh3(EncodeRecordPrefix(kind) + numbers));
  return absl::StrCat(table, header, numbers, checksum, kLastMagic);
}

absl::StatusOr<RecordFooter> ParseRecordFooter(absl::string_view prefix, absl::string_view footer,
                                               uint64_t file_bytes) {
  if (prefix.size() != kRecordPrefixBytes || !absl::StartsWith(prefix, kFirstMagic)) {
    return absl::DataLossError("the first 16 bytes are not those of a record");
  }
  if (footer.size() != kRecordFooterBytes || footer.substr(40) != kLastMagic) {
    return absl::DataLossError("the end of the file is missing");
  }
  if (At<uint64_t>(footer, 32) != Xxh3(absl::StrCat(prefix, footer.substr(0, 32)))) {
    return absl::DataLossError("the footer's checksum does not match");
  }
  const auto version = At<uint32_t>(prefix, 8);
  DISTRO_RETURN_IF_ERROR(CheckFormatVersion(version, kVersion));
  DISTRO_ASSIGN_OR_RETURN(const RecordKind kind, KindOf(At<uint32_t>(prefix, 12), version));
  RecordFooter parsed = {.kind = kind,
                         .round = At<uint64_t>(footer, 0),
                         .segments = At<uint32_t>(footer, 8),
                         .header_bytes = At<uint32_t>(footer, 12),
                         .table_checksum = At<uint64_t>(footer, 16),
                         .header_checksum = At<uint64_t>(footer, 24)};
  const uint64_t least = kRecordPrefixBytes + parsed.segments * kRecordTableEntryBytes +
                         parsed.header_bytes + kRecordFooterBytes;
  if (file_bytes < least) {
    return absl::DataLossError(
        absl::StrCat("the file has ", file_bytes, " bytes, its parts need ", least));
  }
  return parsed;
}

absl::StatusOr<std::vector<RecordEntry>> ParseRecordTable(absl::string_view table,
                                                          const RecordFooter& footer,
                                                          uint64_t payloads_end) {
  if (table.size() != footer.segments * kRecordTableEntryBytes ||
      Xxh3(table) != footer.table_checksum) {
    return absl::DataLossError("the table's checksum does not match");
  }
  std::vector<RecordEntry> entries(footer.segments);
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t at = i * kRecordTableEntryBytes;
    entries[i] = {At<uint64_t>(table, at), At<uint64_t>(table, at + 8),
                  At<uint64_t>(table, at + 16)};
  }
  std::vector<RecordEntry> by_offset = entries;
  std::sort(by_offset.begin(), by_offset.end(),
            [](const RecordEntry& a, const RecordEntry& b) { return a.offset < b.offset; });
  uint64_t end = kRecordPrefixBytes;
  for (const RecordEntry& entry : by_offset) {
    if (entry.offset != end || entry.bytes == 0 || entry.bytes > payloads_end - end) {
      return absl::DataLossError("the payloads do not fill the file");
    }
    end += entry.bytes;
  }
  if (end != payloads_end) return absl::DataLossError("the payloads do not fill the file");
  return entries;
}

namespace {

constexpr absl::string_view kSuffix = ".record";

}  // namespace

std::string RecordName(RoundId round) { return absl::StrFormat("%010d%s", round.value(), kSuffix); }

std::optional<RoundId> RoundOfRecordName(absl::string_view name) {
  uint64_t round;
  if (!absl::SimpleAtoi(absl::StripSuffix(name, kSuffix), &round)) return std::nullopt;
  if (name != RecordName(RoundId(round))) return std::nullopt;
  return RoundId(round);
}

absl::Status StartDamage(const absl::Status& status) {
  if (status.ok() || !absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      status.message(),
      ": restore this file from a copy; without one the run in this folder cannot continue, and a "
      "new run begins in an empty folder, for example from a checkpoint that a worker wrote"));
}

absl::Status RoundDamage(const absl::Status& status, RoundId round) {
  if (status.ok() || !absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      status.message(),
      ": restore this file from a copy; without one, move it and all later records away to ",
      "continue the run from round ", round.value(),
      " (workers that are further start again from the snapshot)"));
}

absl::Status PrunedDamage(const absl::Status& status) {
  if (status.ok() || !absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      status.message(),
      ": restore this file from a copy; without one continue the run in a new folder, from the "
      "copy of its archiver (distroctl run restore)"));
}

}  // namespace distro::server
