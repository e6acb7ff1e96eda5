// A record that is being written: payloads go into a temporary file as segments close, the header comes last
// (docs/files.md).
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/log/log_file.h"
#include "server/log/record_format.h"

namespace distro::server {

// Writes one file of `dir` and makes it durable under its final name, or leaves nothing behind.
class RecordFileWriter {
 public:
  using FsyncObserver = std::function<void(absl::Duration)>;

  // `temporary_path` and `final_path` are in `dir`. Statuses of creating a file.
  static absl::StatusOr<RecordFileWriter> Create(const std::string& dir,
                                                 const std::string& temporary_path,
                                                 const std::string& final_path, RecordKind kind,
                                                 RoundId round, uint32_t segments);
  ~RecordFileWriter();  // removes the temporary file
  RecordFileWriter(RecordFileWriter&&) = default;
  RecordFileWriter& operator=(RecordFileWriter&&) = delete;

  // InvalidArgument: the payload is empty, or the segment was added before or does not exist.
  absl::Status AddSegment(SegmentId segment, absl::string_view payload);

  // [segments]; bytes 0: not added yet.
  const std::vector<RecordEntry>& entries() const { return entries_; }

  // Writes table, header and footer, fsyncs, links to the final name, fsyncs the folder; reports the time of each fsync.
  // FailedPrecondition: the final name exists (fenced). Any error: nothing is left under the final name.
  absl::Status Publish(absl::string_view header, const FsyncObserver& observer);

  // Size of the file so far.
  uint64_t bytes() const { return bytes_; }

 private:
  RecordFileWriter(std::string dir, std::string final_path, RecordKind kind, RoundId round,
                   uint32_t segments, LogFile file);

  std::string dir_;
  std::string final_path_;
  RecordKind kind_;
  RoundId round_;
  LogFile file_;
  uint64_t bytes_ = 0;
  std::vector<RecordEntry> entries_;
};

}  // namespace distro::server
