// Files with a status instead of errno. Every message names the path. Functions are thread-safe;
// blocking.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/file_calls.h"

namespace distro {

class Log;

// The status for a failed system call: NotFound (ENOENT), ResourceExhausted (ENOSPC, EDQUOT, EFBIG,
// EMFILE), PermissionDenied (EACCES, EPERM, EROFS), AlreadyExists (EEXIST), Internal otherwise; the
// message is "what path: strerror", and the remedy of what is exhausted.
absl::Status ErrnoToStatus(int error_number, absl::string_view what, absl::string_view path);

// The whole file. InvalidArgument: it is larger than `max_bytes`, or no regular file.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);

// The text of a file that people edit or copy, as it comes from Windows, git, a NAS or a cloud
// drive: without a byte order mark, with line feeds in the place of CR LF. InvalidArgument: also
// UTF-16. Whether it is UTF-8 is for the parser to say.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t max_bytes = UINT64_MAX);

// Writes to `path`.tmp, fsyncs, renames over `path`, fsyncs the folder: after a crash there is
// either the old file or the new one. The new one has `mode`, less the umask, from its first byte
// on; a link in the place of `path` is replaced, not followed. Aborted: another process wrote the
// same file at the same time.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes,
                                 mode_t mode = 0644);

// The same for the concatenation of the pieces, which is not built in memory.
absl::Status WritePiecesAtomically(const std::string& path,
                                   absl::Span<const absl::string_view> pieces, mode_t mode = 0644);

// Creates `path` and its parents, durably; an existing folder is fine.
absl::Status CreateFolders(const std::string& path);

// fsync of a folder: makes the names in it durable, where the file system can.
absl::Status SyncFolder(const std::string& path);

// Removes a folder and what is in it. It durably loses its name first, for `path`.removed: neither
// a reader nor a start after a loss of power finds half of it under its own.
absl::Status RemoveFolder(const std::string& path);

// Logs a warning if the file system of `folder` cannot make names durable.
void WarnIfNamesMayBeLost(const std::string& folder, Log* log);

// Locks a folder for the lifetime of the object, by flock on a file in it. The system releases the
// lock when the process ends, for whatever reason.
class FolderLock {
 public:
  // FailedPrecondition: another process (or another lock of this one) holds it. InvalidArgument:
  // the file system cannot lock. The lock file stays in the folder.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(FileHandle file) : file_(std::move(file)) {}
  FileHandle file_;
};

}  // namespace distro
