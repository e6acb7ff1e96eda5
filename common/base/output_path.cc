#include "common/base/output_path.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/file_calls.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTriedBytes = 4096;  // an empty file may be created on a full disk

// What is not the disk's fault is that of who gave the name.
absl::Status Refused(const std::string& path, const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return why;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": cannot be written (", why.message(), "): give another name"));
}

absl::Status TryFileIn(const std::string& folder) {
  std::string name = absl::StrCat(folder, "/.distro-XXXXXX");
  const int fd = mkstemp(name.data());
  if (fd < 0) return ErrnoToStatus(errno, "create a file in", folder);
  const auto remove = absl::MakeCleanup([fd, &name] {
    close(fd);
    unlink(name.c_str());
  });
  const std::array<char, kTriedBytes> bytes{};
  const ssize_t written = write(fd, bytes.data(), bytes.size());
  if (written < 0) return ErrnoToStatus(errno, "write into", folder);
  if (written != static_cast<ssize_t>(bytes.size()))
    return ErrnoToStatus(ENOSPC, "write into", folder);
  return fsync(fd) == 0 ? absl::OkStatus() : ErrnoToStatus(errno, "fsync in", folder);
}

}  // namespace

absl::Status TryOutputFolder(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (there && !fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a file, and a folder is needed: give another name"));
  }
  absl::Status status = CreateFolders(path);
  if (status.ok()) status = TryFileIn(path);
  if (!there) fs::remove(path, error);  // a checkpoint appears in it whole, under this name
  return status.ok() ? status : Refused(path, status);
}

absl::Status TryOutputFile(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder: give the name of a file in it"));
  }
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no regular file, and would be replaced: give another name"));
  }
  const std::string folder = FolderOf(path);
  if (!fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": there is no folder ", folder, ": create it, or give another name"));
  }
  const absl::Status status = TryFileIn(folder);
  return status.ok() ? status : Refused(path, status);
}

}  // namespace distro
