// Writes a record: payloads go into a temporary file as segments close, the header comes last
// (docs/files.md).
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/log/disk.h"
#include "server/log/log_file.h"
#include "server/log/record_format.h"

namespace distro::server {

// The paths of a record, both in `dir`. `disk` is borrowed.
struct RecordPaths {
  Disk* disk = nullptr;
  std::string dir;
  std::string temporary_path;
  std::string final_path;
};

// Writes one file and makes it durable under its final name, or removes it. Unless stated
// otherwise, every status has the reason "disk", and a new writer may write the same bytes again.
// A round's record is made by RoundLog::Begin and ended by
// RoundLog::Commit, never by Publish, which does not check the header.
class RecordWriter {
 public:
  using FsyncObserver = std::function<void(absl::Duration)>;

  static absl::StatusOr<RecordWriter> Create(const RecordPaths& paths, RecordKind kind,
                                             RoundId round, uint32_t segments);
  ~RecordWriter();  // removes the temporary file
  RecordWriter(RecordWriter&&) = default;
  RecordWriter& operator=(RecordWriter&&) = delete;

  // InvalidArgument: the payload is empty, or the segment was added before or does not exist.
  absl::Status AddSegment(SegmentId segment, absl::string_view payload);

  RoundId round() const { return round_; }
  // By segment; bytes 0: not added yet.
  const std::vector<RecordEntry>& entries() const { return entries_; }

  // Writes table, header and footer, fsyncs, links to the final name, fsyncs the folder; reports
  // the time of each fsync. FailedPrecondition: the final name exists, and this writer has not
  // created it (fenced). After an error the final name does not exist, unless left_behind().
  absl::Status Publish(absl::string_view header, const FsyncObserver& observer);

  // Replaces the file of that name by this one, for a pruned record. Does not fsync the folder.
  absl::Status Replace(absl::string_view header);

  // After a failed Publish that could not remove the final name either: the file of that name.
  const std::optional<FileId>& left_behind() const { return left_behind_; }

  // Size of the file so far.
  uint64_t bytes() const { return bytes_; }

 private:
  RecordWriter(RecordPaths paths, RecordKind kind, RoundId round, uint32_t segments, LogFile file);
  absl::Status Finish(absl::string_view header, const FsyncObserver& observer);
  absl::Status LinkToFinalName();
  void TakeBackFinalName();

  RecordPaths paths_;
  RecordKind kind_;
  RoundId round_;
  LogFile file_;
  uint64_t bytes_ = 0;
  std::vector<RecordEntry> entries_;
  std::optional<FileId> left_behind_;
};

}  // namespace distro::server
