// Detects changes of files by modification time, size and inode. Not thread-safe; blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace distro {

class FileWatch {
 public:
  // Records the current state of the files; create it before reading them. Ignores empty paths.
  explicit FileWatch(std::vector<std::string> paths);

  // Returns true once for each detected change: read the files then.
  bool Changed();

 private:
  // Seconds and nanoseconds of the change, size, device, inode; not set: there is no such file.
  using Stamp = std::optional<std::tuple<int64_t, int64_t, int64_t, uint64_t, uint64_t>>;
  std::vector<Stamp> Look() const;

  std::vector<std::string> paths_;
  std::vector<Stamp> stamps_;
};

}  // namespace distro
