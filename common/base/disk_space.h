// What a file system has left, of bytes and of files. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro {

// What a file system has, and what of it a program without privileges may still use. Files are
// inodes; 0 of 0: it has no limit of them.
struct DiskSpace {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t files = 0;
  uint64_t free_files = 0;
};

// Of the file system of `path`; nullopt: it cannot be inspected.
std::optional<DiskSpace> SpaceOf(const std::string& path);

// ResourceExhausted: the disk of a file that is to be written has fewer bytes free. OK where that
// cannot be known.
absl::Status CheckRoom(const std::string& path, uint64_t bytes);

// strerror of a failed system call about `path`. ENOSPC is also the error of a file system that has
// free bytes, but no inode for another file: then the text says so.
std::string DiskErrorText(int error_number, absl::string_view path);

}  // namespace distro
