#include "common/base/disk_space.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "absl/strings/str_cat.h"
#include "common/base/file_calls.h"

namespace distro {

std::optional<DiskSpace> SpaceOf(const std::string& path) {
  struct statvfs about;
  if (statvfs(path.c_str(), &about) != 0) return std::nullopt;
  return DiskSpace{.bytes = about.f_blocks * about.f_frsize,
                   .free_bytes = about.f_bavail * about.f_frsize,
                   .files = about.f_files,
                   .free_files = about.f_favail};
}

absl::Status CheckRoom(const std::string& path, uint64_t bytes) {
  const std::optional<DiskSpace> space = SpaceOf(FolderOf(path));
  const bool known = space.has_value() && space->bytes > 0;
  if (!known || bytes <= space->free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": needs ", bytes, " bytes, and its disk has ", space->free_bytes,
                   " free: make room there, or give a folder on another disk"));
}

std::string DiskErrorText(int error_number, absl::string_view path) {
  const std::string text = strerror(error_number);
  if (error_number != ENOSPC) return text;
  const std::optional<DiskSpace> space = SpaceOf(FolderOf(std::string(path)));
  if (!space || space->files == 0 || space->free_files > 0) return text;
  return absl::StrCat(text, " for another file, all ", space->files,
                      " inodes of the file system are in use");
}

}  // namespace distro
