#include "common/base/file_watch.h"

#include <sys/stat.h>

#include <utility>

namespace distro {

FileWatch::FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)) {
  std::erase(paths_, "");
  stamps_ = Look();
}

bool FileWatch::Changed() {
  std::vector<Stamp> stamps = Look();
  if (stamps == stamps_) return false;
  stamps_ = std::move(stamps);
  return true;
}

std::vector<FileWatch::Stamp> FileWatch::Look() const {
  std::vector<Stamp> stamps;
  for (const std::string& path : paths_) {
    struct stat file = {};
    Stamp& stamp = stamps.emplace_back();
    if (stat(path.c_str(), &file) != 0) continue;
    stamp = {file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_size, file.st_dev, file.st_ino};
  }
  return stamps;
}

}  // namespace distro
