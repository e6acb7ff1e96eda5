#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/disk_space.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

absl::StatusCode CodeForErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
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

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "write", path);
    bytes.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status WriteAndSync(const std::string& path, absl::Span<const absl::string_view> pieces) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoToStatus(errno, "create", path);
  absl::Status status;
  for (size_t i = 0; i < pieces.size() && status.ok(); ++i) status = WriteAll(fd, pieces[i], path);
  if (status.ok() && fsync(fd) != 0) status = ErrnoToStatus(errno, "fsync", path);
  if (close(fd) != 0 && status.ok()) status = ErrnoToStatus(errno, "close", path);
  return status;
}

}  // namespace

absl::Status ErrnoToStatus(int error_number, absl::string_view what, absl::string_view path) {
  const absl::StatusCode code = CodeForErrno(error_number);
  const bool full = code == absl::StatusCode::kResourceExhausted;
  return absl::Status(
      code, absl::StrCat(what, " ", path, ": ", DiskErrorText(error_number, path),
                         full ? ": make room there, or give a folder on another disk" : ""));
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
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

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  return WritePiecesAtomically(path, {bytes});
}

absl::Status WritePiecesAtomically(const std::string& path,
                                   absl::Span<const absl::string_view> pieces) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  if (absl::Status status = WriteAndSync(temporary, pieces); !status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return ErrnoToStatus(errno, "rename to", path);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return SyncFolder(parent.empty() ? "." : parent.string());
}

absl::Status CreateFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoToStatus(error.value(), "create folder", path);
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, "open folder", path);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  if (fsync(fd) != 0) return ErrnoToStatus(errno, "fsync folder", path);
  return absl::OkStatus();
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, "open", path);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  struct stat about;
  if (fstat(fd, &about) != 0) return ErrnoToStatus(errno, "stat", path);
  if (!S_ISREG(about.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  if (about.st_size == 0) return MappedFile(nullptr, 0);
  void* data = mmap(nullptr, about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return ErrnoToStatus(errno, "map", path);
  return MappedFile(static_cast<const char*>(data), about.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

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
