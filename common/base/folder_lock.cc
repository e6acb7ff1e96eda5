#include "common/base/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace distro {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  FolderLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return ErrnoToStatus(errno, "lock", path);
  return absl::FailedPreconditionError(absl::StrCat(folder, ": another process holds this folder"));
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

}  // namespace distro
