// A lock on a folder for as long as the object lives: a file in it under flock, which the system releases when the
// process ends, however it ends.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace distro {

class FolderLock {
 public:
  // FailedPrecondition: another process (or another lock of this one) holds it. The lock file stays in the folder.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace distro
