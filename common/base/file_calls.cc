#include "common/base/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

// An open that waits for nobody: without O_NONBLOCK that of a FIFO waits for its other end.
constexpr int kAlways = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

absl::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe (FIFO)";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a device";
}

absl::Status NotRegular(const std::string& path, mode_t mode) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is ", KindOf(mode), ", not a regular file"));
}

// A socket cannot be opened at all, a folder not for writing: their errno says little.
absl::Status OpenError(int error_number, const std::string& path) {
  struct stat about = {};
  const bool unclear = error_number == ENXIO || error_number == EISDIR || error_number == ENODEV;
  if (unclear && stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode))
    return NotRegular(path, about.st_mode);
  if (error_number == ELOOP && lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a symbolic link, and this file is never written through one: remove the link"));
  }
  return ErrnoToStatus(error_number, "open", path);
}

absl::StatusOr<FileHandle> Open(const std::string& path, int flags, bool devices) {
  FileHandle file(open(path.c_str(), flags | kAlways, 0644));
  if (file.fd() < 0) return OpenError(errno, path);
  struct stat about = {};
  if (fstat(file.fd(), &about) != 0) return ErrnoToStatus(errno, "stat", path);
  if (S_ISREG(about.st_mode) || (devices && S_ISCHR(about.st_mode))) return file;
  return NotRegular(path, about.st_mode);
}

bool IsFolder(const char* path) {
  struct stat about = {};
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool IsMissing(int error_number) {
  return error_number == ENOSYS || error_number == EOPNOTSUPP || error_number == EINVAL;
}

}  // namespace

int FileHandle::Close() {
  const int fd = Release();
  return fd < 0 || close(fd) == 0 ? 0 : errno;
}

absl::StatusOr<FileHandle> OpenToRead(const std::string& path) {
  return Open(path, O_RDONLY, /*devices=*/false);
}

absl::StatusOr<FileHandle> OpenOwn(const std::string& path, Create create, Accept accept) {
  const int flags = O_RDWR | O_NOFOLLOW | (create == Create::kIfAbsent ? O_CREAT : 0);
  return Open(path, flags, accept == Accept::kFilesAndDevices);
}

int CreateNew(const std::string& path, mode_t mode, FileHandle* file) {
  *file = FileHandle(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | kAlways, mode));
  return file->fd() < 0 ? errno : 0;
}

int WriteAllAt(int fd, uint64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(n);
    offset += n;
  }
  return 0;
}

int GiveNewName(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return 0;
  // EPERM is what exFAT says. A folder in which nothing may be linked says it, too; then the rename
  // says it again.
  if (errno != EPERM && !IsMissing(errno)) return errno;
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  return IsMissing(errno) ? EOPNOTSUPP : errno;
}

int SyncNames(const std::string& folder, bool* able) {
  if (able != nullptr) *able = true;
  const FileHandle opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.fd() < 0) return errno;
  if (fsync(opened.fd()) == 0) return 0;
  if (!IsMissing(errno)) return errno;
  if (able != nullptr) *able = false;
  return 0;
}

int MakeFolders(const std::string& path) {
  if (path.empty()) return ENOENT;
  std::filesystem::path made;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    made /= part;
    if (IsFolder(made.c_str())) continue;
    if (mkdir(made.c_str(), 0777) != 0) {
      const int error = errno;
      if (error == EEXIST && IsFolder(made.c_str())) continue;  // somebody else's, just now
      return error == EEXIST ? ENOTDIR : error;
    }
    // A folder may be made in one that may not be read, and that one cannot be opened.
    const int error = SyncNames(FolderOf(made));
    if (error != 0 && error != EACCES) return error;
  }
  return 0;
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string LacksText(absl::string_view ability) {
  return absl::StrCat("the file system there has no ", ability,
                      ": give a folder on another file system, such as ext4, xfs or btrfs "
                      "(docs/files.md)");
}

}  // namespace distro
