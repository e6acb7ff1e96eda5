// The system's calls on files, in the one way in which this project makes them. An open never waits
// for another process, as that of a FIFO does. What a program writes never goes through a link that
// somebody put there. A new name becomes durable with its folder.
//
// For those who write files (file.h, part_file.h, line_file.h, server/log/disk.h); others use them.
// Functions with an int result return 0 or an errno. Blocking; thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

// Owns a descriptor.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle() { Close(); }
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  int Close();

 private:
  int fd_ = -1;
};

// Opens a regular file for reading; a link to one is followed. InvalidArgument: it is a folder, a
// FIFO, a socket or a device; the message names which. Otherwise as ErrnoToStatus.
absl::StatusOr<FileHandle> OpenToRead(const std::string& path);

enum class Create { kNo, kIfAbsent };
enum class Accept { kFiles, kFilesAndDevices };  // character devices, such as /dev/null

// Opens a file that a program keeps for itself and goes on writing, for reading and writing.
// InvalidArgument: it is no such file, or a symbolic link, even to one.
absl::StatusOr<FileHandle> OpenOwn(const std::string& path, Create create,
                                   Accept accept = Accept::kFiles);

// Creates a file for reading and writing, with this mode from the first moment on. EEXIST: there is
// something of this name, were it a link without a target.
int CreateNew(const std::string& path, mode_t mode, FileHandle* file);

// Writes all of `bytes`. After an error a part of them may be written.
int WriteAllAt(int fd, uint64_t offset, absl::string_view bytes);

// Gives the file the name `to`, and never replaces another: EEXIST. Where the file system has hard
// links it keeps the name `from`, too, otherwise it loses it. EOPNOTSUPP: the file system has
// neither hard links nor a rename that replaces nothing.
int GiveNewName(const std::string& from, const std::string& to);

// Makes the names in a folder durable. `able`: false if the file system cannot do so, which is no
// error.
int SyncNames(const std::string& folder, bool* able = nullptr);

// Creates a folder and its parents, each durably in its own; an existing folder is fine.
int MakeFolders(const std::string& path);

// The folder of a file: "." for a name without one.
std::string FolderOf(const std::string& path);

// What a message about a file system without `ability` says after the path.
std::string LacksText(absl::string_view ability);

}  // namespace distro
