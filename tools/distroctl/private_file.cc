#include "tools/distroctl/private_file.h"

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
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kLockPause = absl::Milliseconds(20);

// Makes `file` like the one that it replaces. Another owner can be set by root only: the file then
// belongs to who changed it, as after an editor.
absl::Status Resemble(int file, const struct stat& before, const std::string& path) {
  if (fchown(file, before.st_uid, before.st_gid) != 0 && errno != EPERM)
    return ErrnoToStatus(errno, "chown", path);
  if (fchmod(file, before.st_mode & 07777) != 0) return ErrnoToStatus(errno, "chmod", path);
  return absl::OkStatus();
}

// Through a temporary file of this process alone, which is private from its first moment on.
absl::Status Replace(const std::string& path, absl::string_view bytes,
                     const std::optional<struct stat>& before) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  unlink(temporary.c_str());  // of a process that had the same number, and was killed
  FileHandle file;
  int error = CreateNew(temporary, 0600, &file);
  if (error != 0) return ErrnoToStatus(error, "create", temporary);
  absl::Cleanup remove = [&temporary] { unlink(temporary.c_str()); };
  error = WriteAllAt(file.fd(), 0, bytes);
  if (error != 0) return ErrnoToStatus(error, "write", temporary);
  if (before) DISTRO_RETURN_IF_ERROR(Resemble(file.fd(), *before, temporary));
  if (fsync(file.fd()) != 0) return ErrnoToStatus(errno, "fsync", temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) return ErrnoToStatus(errno, "rename to", path);
  std::move(remove).Cancel();
  return SyncFolder(FolderOf(path));
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(const std::string& path, absl::Duration patience) {
  const std::string name = path + ".lock";
  DISTRO_ASSIGN_OR_RETURN(FileHandle file, OpenOwn(name, Create::kIfAbsent));
  const absl::Duration deadline = Clock::Real()->MonotonicNow() + patience;
  while (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoToStatus(errno, "lock", name);
    if (Clock::Real()->MonotonicNow() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": another process is changing it, and holds ", name,
                       ": nothing was changed; try again when that process has ended"));
    }
    absl::SleepFor(kLockPause);
  }
  return FileLock(std::move(file));
}

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
