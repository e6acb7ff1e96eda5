// A file descriptor with statuses: what records are written and read with. Blocking.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro::server {

// Reading is thread-safe. Movable; closes at the end.
class LogFile {
 public:
  // Read-only.
  static absl::StatusOr<LogFile> Open(const std::string& path);
  // For writing and reading. AlreadyExists: the file exists.
  static absl::StatusOr<LogFile> Create(const std::string& path);
  ~LogFile();
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;

  const std::string& path() const { return path_; }
  absl::StatusOr<uint64_t> Size() const;
  // Exactly [offset, offset + size). DataLoss: the file ends before.
  absl::StatusOr<std::string> ReadAt(uint64_t offset, uint64_t size) const;
  absl::Status WriteAt(uint64_t offset, absl::string_view bytes);
  absl::Status Sync();

 private:
  LogFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

}  // namespace distro::server
