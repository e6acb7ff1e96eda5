// A file descriptor with statuses, to write and read records. Blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file_calls.h"
#include "server/log/disk.h"

namespace distro::server {

// Reading is thread-safe. Movable; the destructor closes the file.
class LogFile {
 public:
  // Read-only. DataLoss: it is no regular file.
  static absl::StatusOr<LogFile> Open(const std::string& path);
  // For writing and reading. AlreadyExists: the file exists. `disk` is borrowed.
  static absl::StatusOr<LogFile> Create(Disk* disk, const std::string& path);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;

  const std::string& path() const { return path_; }
  absl::StatusOr<uint64_t> Size() const;
  // Of the open file, whatever its name is now.
  std::optional<FileId> id() const { return FileIdOf(file_.fd()); }
  // Reads exactly [offset, offset + size). DataLoss: the file ends before.
  absl::StatusOr<std::string> ReadAt(uint64_t offset, uint64_t size) const;
  // These require a file from Create. Statuses of DiskError.
  absl::Status WriteAt(uint64_t offset, absl::string_view bytes);
  absl::Status Sync();

 private:
  LogFile(FileHandle file, std::string path, Disk* disk)
      : file_(std::move(file)), path_(std::move(path)), disk_(disk) {}
  FileHandle file_;
  std::string path_;
  Disk* disk_ = nullptr;  // null: read-only
};

}  // namespace distro::server
