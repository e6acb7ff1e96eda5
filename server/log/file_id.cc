#include "server/log/file_id.h"

#include <sys/stat.h>

namespace distro::server {

std::optional<FileId> FileIdOf(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  return FileId{about.st_dev, about.st_ino};
}

}  // namespace distro::server
