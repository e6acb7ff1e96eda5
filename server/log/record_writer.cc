#include "server/log/record_writer.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

template <typename Action>
absl::Status Timed(const RecordFileWriter::FsyncObserver& observer, const Action& action) {
  const absl::Duration begin = Clock::Real()->MonotonicNow();
  absl::Status status = action();
  if (observer) observer(Clock::Real()->MonotonicNow() - begin);
  return status;
}

}  // namespace

RecordFileWriter::RecordFileWriter(std::string dir, std::string final_path, RecordKind kind,
                                   RoundId round, uint32_t segments, LogFile file)
    : dir_(std::move(dir)),
      final_path_(std::move(final_path)),
      kind_(kind),
      round_(round),
      file_(std::move(file)),
      entries_(segments) {}

RecordFileWriter::~RecordFileWriter() {
  if (!file_.path().empty()) unlink(file_.path().c_str());
}

absl::StatusOr<RecordFileWriter> RecordFileWriter::Create(const std::string& dir,
                                                          const std::string& temporary_path,
                                                          const std::string& final_path,
                                                          RecordKind kind, RoundId round,
                                                          uint32_t segments) {
  DISTRO_ASSIGN_OR_RETURN(LogFile file, LogFile::Create(temporary_path));
  RecordFileWriter writer(dir, final_path, kind, round, segments, std::move(file));
  const std::string prefix = EncodeRecordPrefix(kind);
  DISTRO_RETURN_IF_ERROR(writer.file_.WriteAt(0, prefix));
  writer.bytes_ = prefix.size();
  return writer;
}

absl::Status RecordFileWriter::AddSegment(SegmentId segment, absl::string_view payload) {
  if (segment.value() >= entries_.size() || entries_[segment.value()].bytes != 0 ||
      payload.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(final_path_, ": segment ", segment.value(), " of ", entries_.size(), " with ",
                     payload.size(), " bytes is empty, unknown or there already"));
  }
  DISTRO_RETURN_IF_ERROR(file_.WriteAt(bytes_, payload));
  entries_[segment.value()] = {
      .offset = bytes_, .bytes = payload.size(), .checksum = Xxh3(payload)};
  bytes_ += payload.size();
  return absl::OkStatus();
}

absl::Status RecordFileWriter::Publish(absl::string_view header, const FsyncObserver& observer) {
  const std::string tail = EncodeRecordTail(kind_, round_, entries_, header);
  DISTRO_RETURN_IF_ERROR(file_.WriteAt(bytes_, tail));
  DISTRO_RETURN_IF_ERROR(Timed(observer, [&] { return file_.Sync(); }));
  if (link(file_.path().c_str(), final_path_.c_str()) != 0) {
    if (errno != EEXIST) return ErrnoToStatus(errno, "link to", final_path_);
    return absl::FailedPreconditionError(
        absl::StrCat(final_path_, ": fenced: another process wrote this record: stop"));
  }
  const absl::Status status = Timed(observer, [&] { return SyncFolder(dir_); });
  if (!status.ok()) {
    unlink(final_path_.c_str());
    return status;
  }
  bytes_ += tail.size();
  return absl::OkStatus();
}

}  // namespace distro::server
