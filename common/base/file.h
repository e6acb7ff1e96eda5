// Files with a status instead of errno. Every message names the path. Functions are thread-safe;
// blocking.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace distro {

// The status for a failed system call: NotFound (ENOENT), ResourceExhausted (ENOSPC, EDQUOT, EFBIG,
// EMFILE), PermissionDenied (EACCES, EPERM, EROFS), AlreadyExists (EEXIST), Internal otherwise; the
// message is "what path: strerror", and the remedy of what is exhausted.
absl::Status ErrnoToStatus(int error_number, absl::string_view what, absl::string_view path);

// The whole file. InvalidArgument: it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);

// Writes to a temporary name beside `path`, fsyncs, renames over `path`, fsyncs the folder: after a
// crash there is either the old file or the new one.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

// The same for the concatenation of the pieces, which is not built in memory.
absl::Status WritePiecesAtomically(const std::string& path,
                                   absl::Span<const absl::string_view> pieces);

// Creates `path` and its parents; an existing folder is fine.
absl::Status CreateFolders(const std::string& path);

// fsync of a folder: makes the names in it durable.
absl::Status SyncFolder(const std::string& path);

// A file mapped read-only. Borrowed views live as long as the mapping. Map only files that no
// process rewrites in place: if one truncates the file, this process dies (SIGBUS).
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  absl::string_view bytes() const { return absl::string_view(data_, size_); }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Locks a folder for the lifetime of the object, by flock on a file in it. The system releases the
// lock when the process ends, for whatever reason.
class FolderLock {
 public:
  // FailedPrecondition: another process (or another lock of this one) holds it. The lock file stays
  // in the folder.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace distro
