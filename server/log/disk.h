// Every operation with which server/log changes a file system, one by one, so that a test can make
// any of them fail, wait, or be the last thing that the process does
// (tests/testing/server/faulty_disk.h). Reading is not here.
//
// Thread-safe. Blocking. Every message names the operation and the path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro::server {

enum class DiskOperation {
  kCreateFolder,
  kCreate,
  kWrite,
  kFsync,
  kLink,
  kRename,
  kUnlink,
  kFsyncFolder,
};

// "create_folder", "fsync", ...: the value of a metric label and the first word of a message.
absl::string_view DiskOperationName(DiskOperation operation);

// The status of a failed operation. An answer about the path: AlreadyExists (EEXIST), NotFound
// (ENOENT). Otherwise the disk is full (ResourceExhausted: ENOSPC, EDQUOT) or fails in another way
// (Unavailable: read-only, an I/O error, no handles, ...); both have the reason "disk", and the
// same operation may succeed later.
absl::Status DiskError(DiskOperation operation, int error_number, absl::string_view path);

// The operation of a status with the reason "disk".
std::optional<DiskOperation> FailedDiskOperation(const absl::Status& status);

// Whether a DiskError made it: also of those that are an answer about the path.
bool IsDiskError(const absl::Status& status);

// What operators read on pages and in statuses: "write: No space left on device", without the path.
// Of what is no DiskError its code.
std::string DiskErrorInShort(const absl::Status& status);

class Disk {
 public:
  virtual ~Disk() = default;

  // The machine's; lives for ever, the caller does not own it.
  static Disk* Real();

  // `path` and its parents; an existing folder is fine.
  virtual absl::Status CreateFolder(const std::string& path) = 0;

  // A new file, for reading and writing. The caller closes the descriptor. AlreadyExists.
  virtual absl::StatusOr<int> Create(const std::string& path) = 0;
  // All of `bytes` at `offset` of a file that Create gave, or that was opened for writing; `path`
  // names it. After an error a part of them may be there.
  virtual absl::Status Write(int fd, const std::string& path, uint64_t offset,
                             absl::string_view bytes) = 0;
  // After an error nobody knows what the file holds, also when the next Fsync succeeds: it must be
  // written anew.
  virtual absl::Status Fsync(int fd, const std::string& path) = 0;

  // A second name of the same file. AlreadyExists: `to` exists.
  virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  // Replaces `to`.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // NotFound.
  virtual absl::Status Unlink(const std::string& path) = 0;
  // Makes the names in the folder durable.
  virtual absl::Status FsyncFolder(const std::string& path) = 0;
};

// Writes to `path`.tmp, fsyncs, renames over `path`, fsyncs the folder. After an error there is the
// old file or the new one, and the new one may not be durable: the caller writes again before it
// relies on either.
absl::Status WriteAtomically(Disk* disk, const std::string& path, absl::string_view bytes);

// Unlinks; a file that is not there is fine.
absl::Status RemoveIfThere(Disk* disk, const std::string& path);

// Which file a name stands for. Thread-safe, and not an operation of a Disk.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// Not set: there is no such file, or it cannot be looked at.
std::optional<FileId> FileIdOf(const std::string& path);

}  // namespace distro::server
