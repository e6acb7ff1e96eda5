// Opening and checking a log: round_log.h.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "common/round_log/committed_round.h"
#include "server/log/record_format.h"
#include "server/log/round_log.h"

namespace distro::server {
absl::StatusOr<std::unique_ptr<RoundLog>> RoundLog::Open(const std::string& dir,
                                                         const Layout* layout, int verify_payloads,
                                                         Disk* disk, Log* log) {
  DISTRO_RETURN_IF_ERROR(disk->CreateFolder(dir));
  std::unique_ptr<RoundLog> opened(new RoundLog(dir, layout, disk));
  DISTRO_RETURN_IF_ERROR(opened->RemoveTemporaryFiles(log));
  DISTRO_RETURN_IF_ERROR(opened->Load(verify_payloads));
  // A killed process may not have fsynced the folder. No client may learn of a round that a power
  // failure could still undo.
  DISTRO_RETURN_IF_ERROR(disk->FsyncFolder(dir));
  log->Info("round log opened", {{"next_round", opened->next_round().value()},
                                 {"first_round", opened->first_round().value()},
                                 {"bytes", opened->bytes()},
                                 {"verified", verify_payloads}});
  return opened;
}

absl::StatusOr<std::unique_ptr<const RoundLog>> RoundLog::OpenReadOnly(const std::string& dir,
                                                                       const Layout* layout,
                                                                       int verify_payloads) {
  std::unique_ptr<RoundLog> opened(new RoundLog(dir, layout, nullptr));
  DISTRO_RETURN_IF_ERROR(opened->Load(verify_payloads));
  return std::unique_ptr<const RoundLog>(std::move(opened));
}

absl::Status RoundLog::RemoveTemporaryFiles(Log* log) const {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir_));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".tmp")) continue;
    const std::string path = absl::StrCat(dir_, "/", name);
    DISTRO_RETURN_IF_ERROR(disk_->Unlink(path));
    log->Info("uncommitted record removed", {{"path", path}});
  }
  return absl::OkStatus();
}

absl::Status RoundLog::Load(int verify_payloads) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir_));
  uint64_t rounds = 0;
  bool start = false;
  for (const std::string& name : names) {
    if (name == kStartRecordName) start = true;
    if (RoundOfRecordName(name)) ++rounds;
  }
  if (start) DISTRO_RETURN_IF_ERROR(StartDamage(LoadStart()));
  if (!start && rounds > 0) {
    return StartDamage(
        absl::DataLossError(absl::StrCat(dir_, "/", kStartRecordName, ": is missing")));
  }
  const uint64_t first = begin().value();
  for (uint64_t i = 0; i < rounds; ++i) {
    const bool verify = rounds - i <= static_cast<uint64_t>(verify_payloads);
    const RoundId round(first + i);
    DISTRO_RETURN_IF_ERROR(RoundDamage(LoadRound(round, verify), round));
  }
  return absl::OkStatus();
}

absl::Status RoundLog::LoadStart() {
  const std::string path = absl::StrCat(dir_, "/", kStartRecordName);
  DISTRO_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(path, RecordKind::kStart));
  auto start = std::make_unique<v1::StartHeader>();
  if (reader->segments() != 0 || !start->ParseFromString(reader->header_bytes())) {
    return absl::DataLossError(absl::StrCat(path, ": the header is not a start header"));
  }
  const Sha256Digest& hash = layout_->manifest().hash();
  if (start->manifest_hash() != std::string(hash.begin(), hash.end())) {
    return absl::DataLossError(absl::StrCat(path, ": belongs to a run with another model"));
  }
  absl::MutexLock lock(&mu_);
  begin_ = first_round_ = RoundId(start->first_round());
  const uint64_t before =
      start->predecessor_hash() != 0 ? start->predecessor_hash() : reader->chain_hash();
  start_ = std::move(start);
  Append({.hash = before, .bytes = reader->file_bytes()});
  return absl::OkStatus();
}

absl::Status RoundLog::LoadRound(RoundId round, bool verify_payloads) {
  absl::StatusOr<std::shared_ptr<const RecordReader>> opened =
      RecordReader::Open(PathOf(round), RecordKind::kRound);
  if (absl::IsNotFound(opened.status())) {
    return absl::DataLossError(
        absl::StrCat(PathOf(round), ": is missing, but the folder has later records"));
  }
  DISTRO_RETURN_IF_ERROR(opened.status());
  const RecordReader& reader = **opened;
  const absl::Status header =
      CheckHeader(round, reader.header_bytes(), reader.pruned() ? nullptr : &reader.entries());
  if (!header.ok()) {
    return absl::DataLossError(absl::StrCat(PathOf(round), ": ", header.message()));
  }
  if (reader.round() != round) {
    return absl::DataLossError(
        absl::StrCat(PathOf(round), ": is the record of round ", reader.round().value()));
  }
  if (verify_payloads) DISTRO_RETURN_IF_ERROR(reader.VerifyPayloads());
  absl::MutexLock lock(&mu_);
  Append({reader.chain_hash(), reader.file_bytes(), reader.pruned()});
  if (reader.pruned()) first_round_ = round.Next();
  return absl::OkStatus();
}

absl::Status RoundLog::CheckHeader(RoundId round, absl::string_view header_bytes,
                                   const std::vector<RecordEntry>* entries) const {
  DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, ParseRoundHeader(header_bytes, *layout_));
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("round ", round.value(), ": header: ", what));
  };
  if (header.round() != round.value()) return bad(absl::StrCat("is of round ", header.round()));
  if (header.predecessor_hash() != HashBefore(round)) {
    return bad(absl::StrCat("its predecessor hash ", ToHex(header.predecessor_hash()), " is not ",
                            ToHex(HashBefore(round)), ", that of the record before"));
  }
  if (entries == nullptr) return absl::OkStatus();
  if (entries->size() != layout_->segments()) {
    return bad(absl::StrCat(entries->size(), " payloads for ", layout_->segments(), " segments"));
  }
  for (size_t i = 0; i < entries->size(); ++i) {
    const v1::CommittedSegment& listed = header.segments(static_cast<int>(i));
    const RecordEntry& stored = (*entries)[i];
    if (listed.payload_bytes() == stored.bytes && listed.checksum() == stored.checksum) continue;
    return bad(absl::StrCat("segment ", i, ": size or checksum is not that of the stored payload"));
  }
  return absl::OkStatus();
}

}  // namespace distro::server
