#include "common/base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/disk_space.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

absl::StatusCode CodeForErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::string_view RemedyForErrno(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return ": make room there, or give a folder on another disk";
    case EFBIG:
      return ": raise the limit of file sizes (ulimit -f)";
    case EMFILE:
      return ": raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

// Whether `path` still is the name of the open file.
bool IsNameOf(const std::string& path, int fd) {
  struct stat named = {}, opened = {};
  return lstat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

// Creates the temporary file; one that a crash left is removed.
absl::Status CreateTemporary(const std::string& path, mode_t mode, FileHandle* file) {
  int error = CreateNew(path, mode, file);
  if (error == EEXIST && unlink(path.c_str()) == 0) error = CreateNew(path, mode, file);
  return error == 0 ? absl::OkStatus() : ErrnoToStatus(error, "create", path);
}

// Of a large file the part that fits would take the room of others, as of an aggregator's log,
// until it is removed.
absl::Status CheckRoomFor(const std::string& path, absl::Span<const absl::string_view> pieces) {
  constexpr uint64_t kLarge = 1 << 20;
  uint64_t bytes = 0;
  for (const absl::string_view piece : pieces) bytes += piece.size();
  return bytes < kLarge ? absl::OkStatus() : CheckRoom(path, bytes);
}

absl::Status WriteAndSync(const std::string& path, absl::Span<const absl::string_view> pieces,
                          const FileHandle& file) {
  uint64_t offset = 0;
  for (const absl::string_view piece : pieces) {
    const int error = WriteAllAt(file.fd(), offset, piece);
    if (error != 0) return ErrnoToStatus(error, "write", path);
    offset += piece.size();
  }
  return fsync(file.fd()) == 0 ? absl::OkStatus() : ErrnoToStatus(errno, "fsync", path);
}

absl::Status RenameOver(const std::string& temporary, const std::string& path, FileHandle file) {
  if (!IsNameOf(temporary, file.fd())) {
    return absl::AbortedError(
        absl::StrCat(path, ": another process wrote it at the same time: try again"));
  }
  if (const int error = file.Close(); error != 0) return ErrnoToStatus(error, "close", temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) return ErrnoToStatus(errno, "rename to", path);
  return absl::OkStatus();
}

}  // namespace

absl::Status ErrnoToStatus(int error_number, absl::string_view what, absl::string_view path) {
  return absl::Status(CodeForErrno(error_number),
                      absl::StrCat(what, " ", path, ": ", DiskErrorText(error_number, path),
                                   RemedyForErrno(error_number)));
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  DISTRO_ASSIGN_OR_RETURN(const FileHandle file, OpenToRead(path));
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(file.fd(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) return bytes;
    bytes.append(buffer, n);
    if (bytes.size() > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is larger than ", max_bytes, " bytes"));
    }
  }
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t max_bytes) {
  DISTRO_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, max_bytes));
  if (IsUtf16(bytes)) return absl::InvalidArgumentError(absl::StrCat(path, ": ", kIsUtf16));
  return absl::StrReplaceAll(WithoutByteOrderMark(bytes), {{"\r\n", "\n"}});
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes, mode_t mode) {
  return WritePiecesAtomically(path, {bytes}, mode);
}

absl::Status WritePiecesAtomically(const std::string& path,
                                   absl::Span<const absl::string_view> pieces, mode_t mode) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  FileHandle file;
  DISTRO_RETURN_IF_ERROR(CreateTemporary(temporary, mode, &file));
  absl::Status status = CheckRoomFor(path, pieces);
  if (status.ok()) status = WriteAndSync(temporary, pieces, file);
  if (status.ok()) status = RenameOver(temporary, path, std::move(file));
  if (!status.ok()) {
    if (!absl::IsAborted(status)) unlink(temporary.c_str());
    return status;
  }
  return SyncFolder(FolderOf(path));
}

absl::Status CreateFolders(const std::string& path) {
  const int error = MakeFolders(path);
  return error == 0 ? absl::OkStatus() : ErrnoToStatus(error, "create folder", path);
}

absl::Status SyncFolder(const std::string& path) {
  const int error = SyncNames(path);
  return error == 0 ? absl::OkStatus() : ErrnoToStatus(error, "fsync folder", path);
}

absl::Status RemoveFolder(const std::string& path) {
  const std::string removed = path + ".removed";
  std::error_code error;
  std::filesystem::remove_all(removed, error);
  if (error) return ErrnoToStatus(error.value(), "remove", removed);
  if (rename(path.c_str(), removed.c_str()) != 0) return ErrnoToStatus(errno, "rename to", removed);
  DISTRO_RETURN_IF_ERROR(SyncFolder(FolderOf(path)));
  std::filesystem::remove_all(removed, error);
  return error ? ErrnoToStatus(error.value(), "remove", removed) : absl::OkStatus();
}

void WarnIfNamesMayBeLost(const std::string& folder, Log* log) {
  bool able = true;
  if (SyncNames(folder, &able) != 0 || able) return;
  log->Warning(
      "the file system of this folder cannot make names durable (no fsync of folders): a loss of "
      "power may take what was written last",
      {{"folder", folder}, {"page", "docs/files.md"}});
}

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  DISTRO_ASSIGN_OR_RETURN(FileHandle file, OpenOwn(path, Create::kIfAbsent));
  if (flock(file.fd(), LOCK_EX | LOCK_NB) == 0) return FolderLock(std::move(file));
  const int error = errno;
  if (error == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": another process holds this folder"));
  }
  if (error == ENOSYS || error == EOPNOTSUPP || error == EINVAL || error == ENOLCK) {
    return absl::InvalidArgumentError(
        absl::StrCat("lock ", path, ": ", strerror(error), ": ", LacksText("locks (flock)")));
  }
  return ErrnoToStatus(error, "lock", path);
}

}  // namespace distro
