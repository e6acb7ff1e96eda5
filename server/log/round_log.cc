#include "server/log/round_log.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/replica/committed_round.h"

namespace distro::server {
namespace {

constexpr absl::string_view kStartName = "start.record";
constexpr absl::string_view kSuffix = ".record";

std::string NameOf(RoundId round) { return absl::StrFormat("%010d.record", round.value()); }

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& dir) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator i(dir, error), end; !error && i != end;
       i.increment(error)) {
    names.push_back(i->path().filename().string());
  }
  if (error) return ErrnoToStatus(error.value(), "list folder", dir);
  return names;
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

}  // namespace

absl::Status RecordWriter::Commit(absl::string_view header_bytes) {
  return log_->CommitRound(round_, header_bytes, &file_);
}

absl::StatusOr<std::unique_ptr<RoundLog>> RoundLog::Open(const std::string& dir,
                                                         const Layout* layout, int verify_payloads,
                                                         Log* log) {
  DISTRO_RETURN_IF_ERROR(CreateFolders(dir));
  std::unique_ptr<RoundLog> opened(new RoundLog(dir, layout));
  DISTRO_RETURN_IF_ERROR(opened->RemoveTemporaryFiles(log));
  DISTRO_RETURN_IF_ERROR(opened->Load(verify_payloads));
  log->Info("round log opened", {{"next_round", opened->next_round().value()},
                                 {"bytes", opened->bytes()},
                                 {"verified", verify_payloads}});
  return opened;
}

absl::StatusOr<std::unique_ptr<const RoundLog>> RoundLog::OpenReadOnly(const std::string& dir,
                                                                       const Layout* layout,
                                                                       int verify_payloads) {
  std::unique_ptr<RoundLog> opened(new RoundLog(dir, layout));
  DISTRO_RETURN_IF_ERROR(opened->Load(verify_payloads));
  return std::unique_ptr<const RoundLog>(std::move(opened));
}

absl::Status RoundLog::RemoveTemporaryFiles(Log* log) const {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir_));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".tmp")) continue;
    const std::string path = absl::StrCat(dir_, "/", name);
    if (unlink(path.c_str()) != 0) return ErrnoToStatus(errno, "remove", path);
    log->Info("uncommitted record removed", {{"path", path}});
  }
  return absl::OkStatus();
}

absl::Status RoundLog::Load(int verify_payloads) {
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir_));
  uint64_t rounds = 0;
  bool start = false;
  for (const std::string& name : names) {
    if (name == kStartName) start = true;
    if (name != kStartName && absl::EndsWith(name, kSuffix)) ++rounds;
  }
  if (start) DISTRO_RETURN_IF_ERROR(StartDamage(LoadStart()));
  if (!start && rounds > 0) {
    return StartDamage(absl::DataLossError(absl::StrCat(dir_, "/", kStartName, ": is missing")));
  }
  for (uint64_t i = 0; i < rounds; ++i) {
    const bool verify = rounds - i <= static_cast<uint64_t>(verify_payloads);
    DISTRO_RETURN_IF_ERROR(RoundDamage(LoadRound(RoundId(i), verify), RoundId(i)));
  }
  return absl::OkStatus();
}

absl::Status RoundLog::LoadStart() {
  const std::string path = absl::StrCat(dir_, "/", kStartName);
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
  start_ = std::move(start);
  Append(reader->chain_hash(), reader->file_bytes());
  return absl::OkStatus();
}

absl::Status RoundLog::LoadRound(RoundId round, bool verify_payloads) {
  absl::StatusOr<std::shared_ptr<const RecordReader>> reader =
      RecordReader::Open(PathOf(round), RecordKind::kRound);
  if (absl::IsNotFound(reader.status())) {
    return absl::DataLossError(
        absl::StrCat(PathOf(round), ": is missing, but the folder has later records"));
  }
  DISTRO_RETURN_IF_ERROR(reader.status());
  const absl::Status header = CheckHeader(round, (*reader)->header_bytes(), (*reader)->entries());
  if (!header.ok()) {
    return absl::DataLossError(absl::StrCat(PathOf(round), ": ", header.message()));
  }
  if ((*reader)->round() != round) {
    return absl::DataLossError(
        absl::StrCat(PathOf(round), ": is the record of round ", (*reader)->round().value()));
  }
  if (verify_payloads) DISTRO_RETURN_IF_ERROR((*reader)->VerifyPayloads());
  absl::MutexLock lock(&mu_);
  Append((*reader)->chain_hash(), (*reader)->file_bytes());
  return absl::OkStatus();
}

absl::Status RoundLog::CheckHeader(RoundId round, absl::string_view header_bytes,
                                   const std::vector<RecordEntry>& entries) const {
  DISTRO_ASSIGN_OR_RETURN(const v1::RoundHeader header, ParseRoundHeader(header_bytes, *layout_));
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("round ", round.value(), ": header: ", what));
  };
  if (header.round() != round.value()) return bad(absl::StrCat("is of round ", header.round()));
  if (header.predecessor_hash() != HashBefore(round)) {
    return bad(absl::StrCat("its predecessor hash ", ToHex(header.predecessor_hash()), " is not ",
                            ToHex(HashBefore(round)), ", that of the record before"));
  }
  if (entries.size() != layout_->segments()) {
    return bad(absl::StrCat(entries.size(), " payloads for ", layout_->segments(), " segments"));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const v1::CommittedSegment& listed = header.segments(static_cast<int>(i));
    if (listed.payload_bytes() == entries[i].bytes && listed.checksum() == entries[i].checksum) {
      continue;
    }
    return bad(absl::StrCat("segment ", i, ": size or checksum is not that of the stored payload"));
  }
  return absl::OkStatus();
}

void RoundLog::Append(uint64_t hash, uint64_t bytes) {
  hashes_.push_back(hash);
  bytes_ += bytes;
}

bool RoundLog::has_start() const {
  absl::MutexLock lock(&mu_);
  return start_ != nullptr;
}

const v1::StartHeader& RoundLog::start() const {
  absl::MutexLock lock(&mu_);
  return *start_;
}

absl::Status RoundLog::WriteStart(const v1::StartHeader& start) {
  const std::string path = absl::StrCat(dir_, "/", kStartName);
  if (has_start()) return absl::FailedPreconditionError(absl::StrCat(path, ": is there already"));
  DISTRO_ASSIGN_OR_RETURN(
      RecordFileWriter file,
      RecordFileWriter::Create(dir_, NewTemporaryPath(), path, RecordKind::kStart, RoundId(0), 0));
  const std::string header = start.SerializeAsString();
  DISTRO_RETURN_IF_ERROR(file.Publish(header, observer_));
  absl::MutexLock lock(&mu_);
  start_ = std::make_unique<const v1::StartHeader>(start);
  Append(Xxh3(header), file.bytes());
  return absl::OkStatus();
}

RoundId RoundLog::next_round() const {
  absl::MutexLock lock(&mu_);
  return RoundId(hashes_.empty() ? 0 : hashes_.size() - 1);
}

uint64_t RoundLog::HashBefore(RoundId round) const {
  absl::MutexLock lock(&mu_);
  return hashes_[round.value()];
}

absl::StatusOr<v1::RoundHeader> RoundLog::Header(RoundId round) const {
  DISTRO_ASSIGN_OR_RETURN(const auto reader, OpenRecord(round));
  v1::RoundHeader header;
  if (header.ParseFromString(reader->header_bytes())) return header;
  return absl::DataLossError(absl::StrCat(PathOf(round), ": the header cannot be read"));
}

absl::StatusOr<std::shared_ptr<const RecordReader>> RoundLog::OpenRecord(RoundId round) const {
  const std::string path = PathOf(round);
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<const RecordReader> reader,
                          RecordReader::Open(path, RecordKind::kRound));
  if (reader->chain_hash() == HashBefore(round.Next()) &&
      reader->segments() == layout_->segments()) {
    return reader;
  }
  return RoundDamage(absl::DataLossError(absl::StrCat(path, ": has changed since it was verified")),
                     round);
}

absl::StatusOr<std::unique_ptr<RecordWriter>> RoundLog::Begin(RoundId round) {
  if (!has_start() || round != next_round()) {
    return absl::FailedPreconditionError(absl::StrCat(PathOf(round), ": the log ",
                                                      has_start() ? "continues" : "must be started",
                                                      " with round ", next_round().value()));
  }
  DISTRO_ASSIGN_OR_RETURN(RecordFileWriter file,
                          RecordFileWriter::Create(dir_, NewTemporaryPath(), PathOf(round),
                                                   RecordKind::kRound, round, layout_->segments()));
  return std::make_unique<RecordWriter>(this, round, std::move(file));
}

absl::Status RoundLog::CommitRound(RoundId round, absl::string_view header_bytes,
                                   RecordFileWriter* file) {
  if (round != next_round()) {
    return absl::FailedPreconditionError(
        absl::StrCat(PathOf(round), ": fenced: the log is at round ", next_round().value()));
  }
  DISTRO_RETURN_IF_ERROR(CheckHeader(round, header_bytes, file->entries()));
  DISTRO_RETURN_IF_ERROR(file->Publish(header_bytes, observer_));
  absl::MutexLock lock(&mu_);
  Append(Xxh3(header_bytes), file->bytes());
  return absl::OkStatus();
}

uint64_t RoundLog::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

std::string RoundLog::PathOf(RoundId round) const { return absl::StrCat(dir_, "/", NameOf(round)); }

std::string RoundLog::NewTemporaryPath() {
  const int64_t now = absl::ToUnixNanos(Clock::Real()->WallNow());
  return absl::StrCat(dir_, "/", now, "-", getpid(), "-", temporary_files_++, ".tmp");
}

}  // namespace distro::server
