// A bounded text file that grows by whole lines: readings for programs, one JSON object per line.
// If the process is killed, at most the last line is incomplete, and the next process removes it.
// When the file reaches its bound, it is renamed to `path`.1, which replaces the previous one, and
// a new file starts.
//
// Not thread-safe. Lines are written at once but not fsynced: a power failure may lose the last
// ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file_calls.h"

namespace distro {

class LineFile {
 public:
  // Opens or creates `path`, whose folder exists, and removes an incomplete last line. Statuses of
  // OpenOwn (file_calls.h): a link is not followed; a device such as /dev/null is accepted.
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(const std::string& path,
                                                        uint64_t max_bytes);
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Appends `line`, which has no line feed, and a line feed. After an error the file has nothing of
  // it, or a part that the next Append or Open removes.
  absl::Status Append(absl::string_view line);

 private:
  LineFile(std::string path, uint64_t max_bytes, FileHandle file)
      : path_(std::move(path)), max_bytes_(max_bytes), file_(std::move(file)) {}
  absl::Status CutTornLine();
  absl::Status Rotate();

  const std::string path_;
  const uint64_t max_bytes_;
  FileHandle file_;
  bool is_regular_ = false;  // not such as /dev/null, which has no end and keeps its name
  uint64_t size_ = 0;        // of whole lines
};

}  // namespace distro
