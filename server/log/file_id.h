// Which file a name stands for. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace distro::server {

struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// Not set: there is no such file, or it cannot be looked at.
std::optional<FileId> FileIdOf(const std::string& path);

}  // namespace distro::server
