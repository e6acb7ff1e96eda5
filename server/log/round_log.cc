#include "server/log/round_log.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "server/log/record_format.h"

namespace distro::server {
namespace {

constexpr int kMaxTemporaryFiles = 1000;  // of one record

}  // namespace

RoundLog::RoundLog(std::string dir, const Layout* layout, Disk* disk)
    : dir_(std::move(dir)),
      layout_(layout),
      disk_(disk),
      tag_(absl::StrFormat("%08x", std::random_device()())) {}

void RoundLog::Append(const Link& link) {
  links_.push_back(link);
  bytes_ += link.bytes;
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
  const std::string path = absl::StrCat(dir_, "/", kStartRecordName);
  if (has_start()) return absl::FailedPreconditionError(absl::StrCat(path, ": is there already"));
  DISTRO_ASSIGN_OR_RETURN(RecordWriter file, NewFile(path, RecordKind::kStart, RoundId(0), 0));
  const std::string header = start.SerializeAsString();
  DISTRO_RETURN_IF_ERROR(Publish(&file, path, header));
  absl::MutexLock lock(&mu_);
  start_ = std::make_unique<const v1::StartHeader>(start);
  Append({.hash = Xxh3(header), .bytes = file.bytes()});
  return absl::OkStatus();
}

RoundId RoundLog::begin() const {
  absl::MutexLock lock(&mu_);
  return begin_;
}

RoundId RoundLog::next_round() const {
  absl::MutexLock lock(&mu_);
  return RoundId(links_.empty() ? 0 : begin_.value() + links_.size() - 1);
}

uint64_t RoundLog::HashBefore(RoundId round) const {
  absl::MutexLock lock(&mu_);
  return links_[round.value() - begin_.value()].hash;
}

RoundId RoundLog::first_round() const {
  absl::MutexLock lock(&mu_);
  return first_round_;
}

bool RoundLog::pruned(RoundId round) const {
  absl::MutexLock lock(&mu_);
  return links_[round.value() - begin_.value() + 1].pruned;
}

absl::StatusOr<v1::RoundHeader> RoundLog::Header(RoundId round) const {
  DISTRO_ASSIGN_OR_RETURN(const auto reader, OpenUnchanged(round));
  DISTRO_ASSIGN_OR_RETURN(const std::string bytes, reader->HeaderOf(round));
  v1::RoundHeader header;
  if (header.ParseFromString(bytes)) return header;
  return absl::DataLossError(absl::StrCat(reader->path(), ": the header cannot be read"));
}

absl::StatusOr<std::shared_ptr<const RecordReader>> RoundLog::OpenRecord(RoundId round) const {
  const auto pruned = [&] {
    return ErrorWithReason(
        absl::StatusCode::kOutOfRange, "pruned",
        absl::StrCat("round ", round.value(),
                     ": its results were dropped: begin with a snapshot, the log "
                     "goes on from round ",
                     first_round().value()));
  };
  if (round < first_round()) return pruned();
  DISTRO_ASSIGN_OR_RETURN(auto reader, OpenUnchanged(round));
  if (reader->pruned()) return pruned();  // since a moment ago
  return reader;
}

RoundId RoundLog::FileOf(RoundId round) const {
  absl::MutexLock lock(&mu_);
  auto pack = packs_.upper_bound(round.value());
  if (pack == packs_.begin()) return round;
  --pack;
  return round.value() < pack->second.end ? RoundId(pack->first) : round;
}

// NotFound: the round is in no file.
absl::StatusOr<std::shared_ptr<const RecordReader>> RoundLog::OpenFileOf(RoundId round) const {
  auto reader = RecordReader::Open(PathOf(FileOf(round)), RecordKind::kRound);
  if (!absl::IsNotFound(reader.status())) return reader;
  // It was packed a moment ago, perhaps by another process. A pack keeps its name.
  for (uint64_t back = 1; back < kPackRounds && back <= round.value(); ++back) {
    auto pack = RecordReader::Open(PathOf(RoundId(round.value() - back)), RecordKind::kRound);
    if (pack.ok() && (*pack)->packed())
      return (*pack)->end() > round ? std::move(pack) : std::move(reader);
  }
  return reader;
}

absl::StatusOr<std::shared_ptr<const RecordReader>> RoundLog::OpenUnchanged(RoundId round) const {
  const std::string path = PathOf(FileOf(round));
  const auto damage = [&](const absl::Status& status) {
    return pruned(round) ? PrunedDamage(status) : RoundDamage(status, round);
  };
  const auto reader = OpenFileOf(round);
  if (absl::IsNotFound(reader.status()))
    return damage(absl::DataLossError(absl::StrCat(path, ": is missing")));
  if (!reader.ok()) return damage(reader.status());
  const bool whole = (*reader)->pruned() || (*reader)->segments() == layout_->segments();
  const bool has_it = (*reader)->round() <= round && round < (*reader)->end();
  if (whole && has_it && (*reader)->ChainHashOf(round) == HashBefore(round.Next())) return reader;
  return damage(absl::DataLossError(absl::StrCat(path, ": has changed since it was verified")));
}

absl::StatusOr<RecordWriter> RoundLog::Begin(RoundId round) {
  if (!has_start() || round != next_round()) {
    return absl::FailedPreconditionError(absl::StrCat(PathOf(round), ": the log ",
                                                      has_start() ? "continues" : "must be started",
                                                      " with round ", next_round().value()));
  }
  return NewFile(PathOf(round), RecordKind::kRound, round, layout_->segments());
}

absl::StatusOr<RecordWriter> RoundLog::NewFile(const std::string& path, RecordKind kind,
                                               RoundId round, uint32_t segments) {
  // The name may belong to a file that could not be removed.
  for (int i = 0;; ++i) {
    const std::string temporary = absl::StrCat(path, "-", tag_, "-", i, ".tmp");
    auto file = RecordWriter::Create({disk_, dir_, temporary, path}, kind, round, segments);
    if (!absl::IsAlreadyExists(file.status()) || i == kMaxTemporaryFiles) return file;
  }
}

absl::Status RoundLog::Publish(RecordWriter* file, const std::string& path,
                               absl::string_view header) {
  if (left_behind_ && FileIdOf(left_behind_->first) == left_behind_->second) {
    DISTRO_RETURN_IF_ERROR(disk_->Unlink(left_behind_->first));
  }
  left_behind_.reset();
  absl::Status status = file->Publish(header, observer_);
  if (file->left_behind()) left_behind_ = {path, *file->left_behind()};
  return status;
}

absl::Status RoundLog::Commit(RecordWriter record, absl::string_view header_bytes) {
  const RoundId round = record.round();
  if (round != next_round()) {
    return absl::FailedPreconditionError(
        absl::StrCat(PathOf(round), ": fenced: the log is at round ", next_round().value()));
  }
  DISTRO_RETURN_IF_ERROR(CheckHeader(round, header_bytes, &record.entries()));
  DISTRO_RETURN_IF_ERROR(Publish(&record, PathOf(round), header_bytes));
  absl::MutexLock lock(&mu_);
  Append({.hash = Xxh3(header_bytes), .bytes = record.bytes()});
  return absl::OkStatus();
}

uint64_t RoundLog::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

uint64_t RoundLog::files() const {
  absl::MutexLock lock(&mu_);
  uint64_t packed = 0;
  for (const auto& [first, pack] : packs_) packed += pack.end - first;
  return links_.size() - packed + packs_.size();
}

std::string RoundLog::PathOf(RoundId round) const {
  return absl::StrCat(dir_, "/", RecordName(round));
}

}  // namespace distro::server
