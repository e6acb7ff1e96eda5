#include "tools/distroctl/private_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace distro::tools {

absl::Status WritePrivate(const std::string& path, const std::string& bytes) {
  return WriteFileAtomically(path, bytes, 0600);
}

absl::Status RewriteKeepingMode(const std::string& path, const std::string& bytes) {
  struct stat before = {};
  if (stat(path.c_str(), &before) != 0) {
    if (errno == ENOENT) return WritePrivate(path, bytes);
    return ErrnoToStatus(errno, "stat", path);
  }
  const mode_t mode = before.st_mode & 07777;
  DISTRO_RETURN_IF_ERROR(WriteFileAtomically(path, bytes, mode));
  // What the umask left out of it.
  if (chmod(path.c_str(), mode) != 0) return ErrnoToStatus(errno, "chmod", path);
  return absl::OkStatus();
}

}  // namespace distro::tools
