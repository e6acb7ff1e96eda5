// Tells that files may have changed: by time of change, size and identity, looked at once a second
// at most. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace distro::server {

class FileWatch {
 public:
  // What is there now is what the caller is about to read. Empty paths are left out. `clock` is
  // borrowed.
  FileWatch(std::vector<std::string> paths, const Clock* clock);

  // True once for each change that is seen: read the files then.
  bool Changed();

 private:
  // Seconds and nanoseconds of the change, size, device, inode; not set: there is no such file.
  using Stamp = std::optional<std::tuple<int64_t, int64_t, int64_t, uint64_t, uint64_t>>;
  std::vector<Stamp> Look() const;

  std::vector<std::string> paths_;
  const Clock* const clock_;
  absl::Duration looked_;
  std::vector<Stamp> stamps_;
};

}  // namespace distro::server
