// The bytes of a record file (docs/files.md). Pure functions. The file is on the own disk, so every
// fault is DataLoss.
//
//   record = prefix payload* table header footer
//   prefix   16  magic, version, kind
//   table    24 each segment, in order: offset, bytes, XXH3-64 of its payload
//   header       RoundHeader or StartHeader; its XXH3-64 is the chain hash
//   footer   48  round, segments, header bytes, XXH3-64 of table, header, and of prefix and footer;
//            magic
//
// Payloads fill the file from the prefix to the table without gaps, in the order in which segments
// closed. In a pack the payloads are the headers of its rounds, in order, and their checksums are
// the chain hashes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace distro::server {

enum class RecordKind : uint32_t {
  kStart = 1,
  kRound = 2,
  kPruned =
      3,  // a round whose payloads were dropped: no payloads, an empty table, the round's header
  // Consecutive rounds whose payloads were dropped: their headers in the place of payloads, no
  // header. Its format version is 2, so that older programs refuse it as newer.
  kPack = 4,
};

// A pack is full with so many rounds, or as soon as it has so many bytes of headers.
inline constexpr uint64_t kPackRounds = 1024;
inline constexpr uint64_t kPackHeaderBytes = 4 << 20;

inline constexpr uint64_t kRecordPrefixBytes = 16;
inline constexpr uint64_t kRecordTableEntryBytes = 24;
inline constexpr uint64_t kRecordFooterBytes = 48;

// The position of a segment's payload in the file.
struct RecordEntry {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

struct RecordFooter {
  RecordKind kind = RecordKind::kRound;
  uint64_t round = 0;
  uint32_t segments = 0;
  uint32_t header_bytes = 0;
  uint64_t table_checksum = 0;
  uint64_t header_checksum = 0;
};

std::string EncodeRecordPrefix(RecordKind kind);
std::string EncodeRecordTable(const std::vector<RecordEntry>& entries);

// The end of a record, after the payloads: table, header, footer.
std::string EncodeRecordTail(RecordKind kind, RoundId round,
                             const std::vector<RecordEntry>& entries, absl::string_view header);

// `prefix` and `footer` are the first and the last bytes of the file. Checks both, and that the
// sizes fit `file_bytes`. FailedPrecondition: undamaged and of a newer version; all versions have
// the same prefix and footer.
absl::StatusOr<RecordFooter> ParseRecordFooter(absl::string_view prefix, absl::string_view footer,
                                               uint64_t file_bytes);

// Entries of payloads that fill [kRecordPrefixBytes, payloads_end) without gaps or overlaps.
absl::StatusOr<std::vector<RecordEntry>> ParseRecordTable(absl::string_view table,
                                                          const RecordFooter& footer,
                                                          uint64_t payloads_end);

// Names of the files in rounds/, and what to do when one of them is damaged (docs/files.md). Pure
// functions.

inline constexpr absl::string_view kStartRecordName = "start.record";

// "0000000042.record": of the round, or of a pack that begins with it.
std::string RecordName(RoundId round);
// nullopt: not the name of a round's record.
std::optional<RoundId> RoundOfRecordName(absl::string_view name);

// Returns the status; adds the remedy for the operator to a DataLoss.
absl::Status StartDamage(const absl::Status& status);
absl::Status RoundDamage(const absl::Status& status, RoundId round);
// Of a round whose payloads were dropped: the run cannot go on from it.
absl::Status PrunedDamage(const absl::Status& status);

}  // namespace distro::server
