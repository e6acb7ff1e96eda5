// Opening and checking a log: round_log.h.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "common/run/record/committed_round.h"
#include "server/log/record_format.h"
#include "server/log/round_log.h"

namespace distro::server {
namespace {

// Whether a damaged file begins like one of pruned rounds.
bool IsPruned(const std::string& path) {
  const auto file = LogFile::Open(path);
  const auto prefix = file.ok() ? file->ReadAt(0, kRecordPrefixBytes) : file.status();
  return prefix.ok() && (*prefix == EncodeRecordPrefix(RecordKind::kPack) ||
                         *prefix == EncodeRecordPrefix(RecordKind::kPruned));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RoundLog>> RoundLog::Open(const std::string& dir,
                                                         const Layout* layout, int verify_payloads,
                                                         Disk* disk, Log* log) {
  DISTRO_RETURN_IF_ERROR(disk->CreateFolder(dir));
  std::unique_ptr<RoundLog> opened(new RoundLog(dir, layout, disk));
  DISTRO_RETURN_IF_ERROR(opened->RemoveTemporaryFiles(log));
  DISTRO_RETURN_IF_ERROR(opened->Load(verify_payloads));
  // A killed process may not have fsynced the folder. No client may learn of a round that a power
  // failure could still undo, and no record may go before the name of its pack is there for good.
  DISTRO_RETURN_IF_ERROR(disk->FsyncFolder(dir));
  DISTRO_RETURN_IF_ERROR(opened->RemovePackedRecords(log));
  log->Info("round log opened", {{"next_round", opened->next_round().value()},
                                 {"first_round", opened->first_round().value()},
                                 {"bytes", opened->bytes()},
                                 {"files", opened->files()},
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

// Records that a pack replaced: the process was killed before it removed them. Only after all
// checks of the pack and the chain.
absl::Status RoundLog::RemovePackedRecords(Log* log) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir_));
  for (const std::string& name : names) {
    const std::optional<RoundId> round = RoundOfRecordName(name);
    if (!round || FileOf(*round) == *round) continue;
    packed_.push_back(PathOf(*round));
  }
  if (!packed_.empty()) log->Info("packed records removed", {{"records", packed_.size()}});
  return RemovePacked();
}

absl::Status RoundLog::Load(int verify_payloads) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir_));
  std::optional<RoundId> last;
  bool start = false;
  for (const std::string& name : names) {
    if (name == kStartRecordName) start = true;
    if (const auto round = RoundOfRecordName(name)) last = std::max(last, round);
  }
  if (start) DISTRO_RETURN_IF_ERROR(StartDamage(LoadStart()));
  if (!start && last) {
    return StartDamage(
        absl::DataLossError(absl::StrCat(dir_, "/", kStartRecordName, ": is missing")));
  }
  while (last && next_round() <= *last) {
    const RoundId round = next_round();
    const bool verify = last->value() - round.value() < static_cast<uint64_t>(verify_payloads);
    DISTRO_RETURN_IF_ERROR(LoadFile(round, verify));
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

// Loads the rounds from `round` on that are in its file.
absl::Status RoundLog::LoadFile(RoundId round, bool verify_payloads) {
  const absl::StatusOr<std::shared_ptr<const RecordReader>> opened = OpenFileOf(round);
  if (absl::IsNotFound(opened.status())) {
    return RoundDamage(absl::DataLossError(absl::StrCat(
                           PathOf(round), ": is missing, but the folder has later records")),
                       round);
  }
  if (!opened.ok()) {
    return IsPruned(PathOf(round)) ? PrunedDamage(opened.status())
                                   : RoundDamage(opened.status(), round);
  }
  const RecordReader& reader = **opened;
  const absl::Status status = LoadRounds(round, reader, verify_payloads);
  return reader.pruned() ? PrunedDamage(status) : RoundDamage(status, round);
}

absl::Status RoundLog::LoadRounds(RoundId first, const RecordReader& reader, bool verify_payloads) {
  const auto damage = [&](auto... what) {
    return absl::DataLossError(absl::StrCat(reader.path(), ": ", what...));
  };
  if (reader.packed() && (first < reader.round() || first >= reader.end())) {
    return damage("is the pack of rounds ", reader.round().value(), " to ",
                  reader.end().value() - 1);
  }
  const uint64_t count = reader.packed() ? reader.end().value() - first.value() : 1;
  for (uint64_t i = 0; i < count; ++i) {
    const RoundId round(first.value() + i);
    const RoundId stored = reader.packed() ? round : reader.round();
    DISTRO_ASSIGN_OR_RETURN(const std::string header, reader.HeaderOf(stored));
    const absl::Status checked =
        CheckHeader(round, header, reader.pruned() ? nullptr : &reader.entries());
    if (!checked.ok()) return damage(checked.message());
    if (stored != round) return damage("is the record of round ", stored.value());
    absl::MutexLock lock(&mu_);
    Append({.hash = reader.ChainHashOf(round),
            .bytes = reader.packed() ? 0 : reader.file_bytes(),
            .pruned = reader.pruned()});
    if (reader.pruned()) first_round_ = round.Next();
  }
  if (!reader.packed()) return verify_payloads ? reader.VerifyPayloads() : absl::OkStatus();
  absl::MutexLock lock(&mu_);
  packs_[reader.round().value()] = {.end = reader.end().value(), .bytes = reader.file_bytes()};
  bytes_ += reader.file_bytes();
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
