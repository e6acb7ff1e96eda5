#include "tools/distroctl/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro::tools {

absl::Status WritePrivate(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return ErrnoToStatus(errno, "create", temporary);
  const absl::Cleanup close_file = [file] { close(file); };
  if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      fsync(file) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoToStatus(errno, "write", path);
  }
  return absl::OkStatus();
}

absl::Status RewriteKeepingMode(const std::string& path, const std::string& bytes) {
  struct stat before = {};
  if (stat(path.c_str(), &before) != 0) {
    if (errno == ENOENT) return WritePrivate(path, bytes);
    return ErrnoToStatus(errno, "stat", path);
  }
  DISTRO_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
  if (chmod(path.c_str(), before.st_mode & 07777) != 0) return ErrnoToStatus(errno, "chmod", path);
  return absl::OkStatus();
}

}  // namespace distro::tools
