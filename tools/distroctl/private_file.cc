#include "tools/distroctl/private_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kLockPause = absl::Milliseconds(20);

absl::Status WriteAll(int file, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoToStatus(errno, "write", path);
    bytes.remove_prefix(put);
  }
  return absl::OkStatus();
}

// Makes `file` like the one that it replaces. Another owner can be set by root only: the file then
// belongs to who changed it, as after an editor.
absl::Status Resemble(int file, const struct stat& before, const std::string& path) {
  if (fchown(file, before.st_uid, before.st_gid) != 0 && errno != EPERM)
    return ErrnoToStatus(errno, "chown", path);
  if (fchmod(file, before.st_mode & 07777) != 0) return ErrnoToStatus(errno, "chmod", path);
  return absl::OkStatus();
}

absl::Status Replace(const std::string& path, absl::string_view bytes,
                     const std::optional<struct stat>& before) {
  std::string temporary = path + ".XXXXXX";
  const int file = mkostemp(temporary.data(), O_CLOEXEC);  // a name of its own, mode 0600
  if (file < 0) return ErrnoToStatus(errno, "create a file beside", path);
  absl::Cleanup remove = [&temporary] { unlink(temporary.c_str()); };
  const absl::Cleanup close_file = [file] { close(file); };
  DISTRO_RETURN_IF_ERROR(WriteAll(file, bytes, temporary));
  if (before) DISTRO_RETURN_IF_ERROR(Resemble(file, *before, temporary));
  if (fsync(file) != 0) return ErrnoToStatus(errno, "fsync", temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) return ErrnoToStatus(errno, "rename to", path);
  std::move(remove).Cancel();
  const std::string folder = std::filesystem::path(path).parent_path();
  return SyncFolder(folder.empty() ? "." : folder);
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(const std::string& path, absl::Duration patience) {
  const std::string name = path + ".lock";
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoToStatus(errno, "open", name);
  FileLock lock(fd);
  const absl::Time deadline = absl::Now() + patience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoToStatus(errno, "lock", name);
    if (absl::Now() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": another process is changing it, and holds ", name,
                       ": nothing was changed; try again when that process has ended"));
    }
    absl::SleepFor(kLockPause);
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

absl::Status WritePrivate(const std::string& path, const std::string& bytes) {
  return Replace(path, bytes, std::nullopt);
}

absl::Status RewriteKeepingMode(const std::string& path, const std::string& bytes) {
  struct stat before = {};
  if (stat(path.c_str(), &before) == 0) return Replace(path, bytes, before);
  if (errno == ENOENT) return WritePrivate(path, bytes);
  return ErrnoToStatus(errno, "stat", path);
}

}  // namespace distro::tools
