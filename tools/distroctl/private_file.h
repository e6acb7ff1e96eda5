// Writes files with an operator's secrets, and changes them although other processes do so at the
// same time. Blocking.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/file_calls.h"

namespace distro::tools {

// Excludes other processes from changing a file, for the lifetime of the object: flock on
// `path`.lock, which stays. Take it before the file is read.
class FileLock {
 public:
  // Waits `patience` for another process. FailedPrecondition: it still holds the lock.
  static absl::StatusOr<FileLock> Take(const std::string& path,
                                       absl::Duration patience = absl::Seconds(10));

 private:
  explicit FileLock(FileHandle file) : file_(std::move(file)) {}
  FileHandle file_;
};

// Writes a file readable only by its owner, atomically: it has mode 0600 before it gets content and
// its name. After an error `path` is as before.
absl::Status WritePrivate(const std::string& path, const std::string& bytes);

// Replaces a file atomically, and keeps its mode and owner; the new one has them before it gets its
// name. 0600 for a file that was not there.
absl::Status RewriteKeepingMode(const std::string& path, const std::string& bytes);

}  // namespace distro::tools
