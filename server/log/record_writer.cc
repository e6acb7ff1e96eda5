#include "server/log/record_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

template <typename Action>
absl::Status Timed(const RecordWriter::FsyncObserver& observer, const Action& action) {
  const absl::Duration begin = Clock::Real()->MonotonicNow();
  absl::Status status = action();
  if (observer) observer(Clock::Real()->MonotonicNow() - begin);
  return status;
}

}  // namespace

RecordWriter::RecordWriter(RecordPaths paths, RecordKind kind, RoundId round, uint32_t segments,
                           LogFile file)
    : paths_(std::move(paths)),
      kind_(kind),
      round_(round),
      file_(std::move(file)),
      entries_(segments) {}

RecordWriter::~RecordWriter() {
  if (!file_.path().empty()) paths_.disk->Unlink(file_.path()).IgnoreError();
}

absl::StatusOr<RecordWriter> RecordWriter::Create(const RecordPaths& paths, RecordKind kind,
                                                  RoundId round, uint32_t segments) {
  DISTRO_ASSIGN_OR_RETURN(LogFile file, LogFile::Create(paths.disk, paths.temporary_path));
  RecordWriter writer(paths, kind, round, segments, std::move(file));
  const std::string prefix = EncodeRecordPrefix(kind);
  DISTRO_RETURN_IF_ERROR(writer.file_.WriteAt(0, prefix));
  writer.bytes_ = prefix.size();
  return writer;
}

absl::Status RecordWriter::AddSegment(SegmentId segment, absl::string_view payload) {
  if (segment.value() >= entries_.size() || entries_[segment.value()].bytes != 0 ||
      payload.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths_.final_path, ": segment ", segment.value(), " of ", entries_.size(),
                     " with ", payload.size(), " bytes is empty, unknown or there already"));
  }
  DISTRO_RETURN_IF_ERROR(file_.WriteAt(bytes_, payload));
  entries_[segment.value()] = {
      .offset = bytes_, .bytes = payload.size(), .checksum = Xxh3(payload)};
  bytes_ += payload.size();
  return absl::OkStatus();
}

absl::Status RecordWriter::Publish(absl::string_view header, const FsyncObserver& observer) {
  DISTRO_RETURN_IF_ERROR(Finish(header, observer));
  absl::Status status = LinkToFinalName();
  if (status.ok()) {
    status = Timed(observer, [&] { return paths_.disk->FsyncFolder(paths_.dir); });
  }
  if (!status.ok()) TakeBackFinalName();
  return status;
}

absl::Status RecordWriter::Replace(absl::string_view header) {
  DISTRO_RETURN_IF_ERROR(Finish(header, {}));
  return paths_.disk->Rename(file_.path(), paths_.final_path);
}

absl::Status RecordWriter::Finish(absl::string_view header, const FsyncObserver& observer) {
  const std::string tail = EncodeRecordTail(kind_, round_, entries_, header);
  DISTRO_RETURN_IF_ERROR(file_.WriteAt(bytes_, tail));
  bytes_ += tail.size();
  return Timed(observer, [&] { return file_.Sync(); });
}

absl::Status RecordWriter::LinkToFinalName() {
  absl::Status status = paths_.disk->Link(file_.path(), paths_.final_path);
  if (!absl::IsAlreadyExists(status)) return status;
  // On a network file system a lost answer repeats the request.
  if (FileIdOf(paths_.final_path) == file_.id()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(paths_.final_path, ": fenced: another process wrote this record: stop"));
}

// A link may exist although the call reported an error. A foreign file of that name is kept.
void RecordWriter::TakeBackFinalName() {
  const std::optional<FileId> ours = file_.id();
  if (!ours || FileIdOf(paths_.final_path) != ours) return;
  if (!paths_.disk->Unlink(paths_.final_path).ok()) left_behind_ = ours;
}

}  // namespace distro::server
