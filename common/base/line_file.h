// A text file that grows by whole lines and is bounded: readings for programs, one JSON object a
// line. A process that is killed leaves at most one line that is not whole, at the end, which the
// next one cuts off. When the file has grown to its bound it becomes `path`.1, in the place of the
// one before, and begins anew.
//
// Not thread-safe. Lines are written at once and not fsynced: a power failure may cost the last
// ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

class LineFile {
 public:
  // Opens or creates `path`, whose folder exists, and cuts off what follows its last line. Statuses
  // of ErrnoToStatus; the message names the path.
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(const std::string& path,
                                                        uint64_t max_bytes);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Appends `line`, which has no line feed, and one. After an error nothing of it is in the file,
  // or a part that the next Append or Open cuts off.
  absl::Status Append(absl::string_view line);

 private:
  LineFile(std::string path, uint64_t max_bytes, int fd)
      : path_(std::move(path)), max_bytes_(max_bytes), fd_(fd) {}
  absl::Status CutTornLine();
  absl::Status Rotate();

  const std::string path_;
  const uint64_t max_bytes_;
  int fd_;
  bool is_regular_ = false;  // not such as /dev/null, which has no end and keeps its name
  uint64_t size_ = 0;        // of whole lines
};

}  // namespace distro
