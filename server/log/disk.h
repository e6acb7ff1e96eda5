// The interface for all changes of a file system by server/log, one operation per function, so that
// a test can make any of them fail, wait, or kill the process (tests/testing/server/faulty_disk.h).
// It does not read.
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
  kPut,     // of an object (server/log/bucket)
  kDelete,  // of an object
};

// "create_folder", "fsync", ...: the value of a metric label and the first word of a message.
absl::string_view DiskOperationName(DiskOperation operation);

// The status of a failed operation. About the path: AlreadyExists (EEXIST), NotFound (ENOENT).
// About the disk, with the reason "disk": ResourceExhausted if it is full (ENOSPC, EDQUOT),
// otherwise Unavailable (read-only, an I/O error, no handles, ...); the same operation may succeed
// later. A file system with free bytes and no free inodes is named as such.
absl::Status DiskError(DiskOperation operation, int error_number, absl::string_view path);

// The same of an operation on an object that failed with this status: Unavailable.
absl::Status StoreError(DiskOperation operation, const absl::Status& status);

// The operation of a status with the reason "disk".
std::optional<DiskOperation> FailedDiskOperation(const absl::Status& status);

// Whether DiskError made the status, including those about the path.
bool IsDiskError(const absl::Status& status);

// The text for pages and statuses, without the path: "write: No space left on device". For a status
// that DiskError did not make, its code.
std::string DiskErrorInShort(const absl::Status& status);

class Disk {
 public:
  virtual ~Disk() = default;

  // The machine's disk; never destroyed, not owned by the caller.
  static Disk* Real();

  // Called before the folder is read: makes it hold what is stored elsewhere. Whether that changed
  // its run.
  virtual absl::StatusOr<bool> Restore() { return false; }

  // Creates `path` and its parents, each durably in its own; an existing folder is fine.
  virtual absl::Status CreateFolder(const std::string& path) = 0;

  // Creates a file for reading and writing. The caller closes the descriptor. AlreadyExists.
  virtual absl::StatusOr<int> Create(const std::string& path) = 0;
  // Writes all of `bytes` at `offset` of a file from Create, or one opened for writing; `path` is
  // its name. After an error a part of them may be written.
  virtual absl::Status Write(int fd, const std::string& path, uint64_t offset,
                             absl::string_view bytes) = 0;
  // After an error the content of the file is unknown, even if the next Fsync succeeds: write it
  // again.
  virtual absl::Status Fsync(int fd, const std::string& path) = 0;

  // Gives the file the name `to`, beside `from` where the file system has hard links, otherwise in
  // its place. AlreadyExists: `to` exists; it is never replaced.
  virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  // Replaces `to`.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // NotFound.
  virtual absl::Status Unlink(const std::string& path) = 0;
  // Makes the names in the folder durable, where the file system can.
  virtual absl::Status FsyncFolder(const std::string& path) = 0;
};

// Writes to `path`.tmp, fsyncs, renames over `path`, fsyncs the folder. After an error `path` is
// the old file or the new one, which may not be durable: write again before you rely on either.
absl::Status WriteAtomically(Disk* disk, const std::string& path, absl::string_view bytes);

// Unlinks; a missing file is fine.
absl::Status RemoveIfThere(Disk* disk, const std::string& path);

// Identifies a file. Thread-safe; not an operation of a Disk.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// nullopt: there is no such file, or it cannot be inspected.
std::optional<FileId> FileIdOf(const std::string& path);
std::optional<FileId> FileIdOf(int fd);

}  // namespace distro::server
