#include "tests/testing/file_system_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace distro::testing {
namespace {

FileSystemCalls* current = nullptr;

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string PathOf(int fd) {
  char path[4096];
  const ssize_t size =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  return size < 0 ? "" : std::string(path, static_cast<size_t>(size));
}

// Whether the call fails; errno is set.
bool Fails(const std::string& call, const std::string& path) {
  const int error = current == nullptr ? 0 : current->Meet(call, path);
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace

FileSystemCalls::FileSystemCalls() { current = this; }
FileSystemCalls::~FileSystemCalls() { current = nullptr; }

int FileSystemCalls::Meet(const std::string& call, const std::string& path) {
  calls_.push_back(call + " " + std::filesystem::path(path).lexically_normal().string());
  if (hook_) hook_(calls_.back());
  const auto fault = faults_.find(call);
  return fault == faults_.end() ? 0 : fault->second;
}

}  // namespace distro::testing

using distro::testing::Fails;
using distro::testing::PathOf;
using distro::testing::Real;

// The program's own functions come before those of the C library.
extern "C" {

int link(const char* from, const char* to) noexcept {
  return Fails("link", to) ? -1 : Real<int(const char*, const char*)>("link")(from, to);
}

int rename(const char* from, const char* to) noexcept {
  return Fails("rename", to) ? -1 : Real<int(const char*, const char*)>("rename")(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned int flags) noexcept {
  using Renameat2 = int(int, const char*, int, const char*, unsigned int);
  return Fails("renameat2", to)
             ? -1
             : Real<Renameat2>("renameat2")(from_folder, from, to_folder, to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return Fails("mkdir", path) ? -1 : Real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int flock(int fd, int operation) noexcept {
  return Fails("flock", PathOf(fd)) ? -1 : Real<int(int, int)>("flock")(fd, operation);
}

int fsync(int fd) {
  struct stat about = {};
  const bool folder = fstat(fd, &about) == 0 && S_ISDIR(about.st_mode);
  return Fails(folder ? "fsync_folder" : "fsync", PathOf(fd)) ? -1 : Real<int(int)>("fsync")(fd);
}

}  // extern "C"
