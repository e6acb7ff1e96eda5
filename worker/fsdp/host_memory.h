// The host memory that a process may use. Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace distro::worker {

// What the machine has, or what the control group allows, whichever is less.
int64_t HostMemoryBytes();

// The part of it, one in so many, that no plan uses: a process cannot have all.
inline constexpr int64_t kHostReserveShare = 16;

// The least of memory.max (version 2) and memory.limit_in_bytes (version 1) of this process's
// control group and of those around it; INT64_MAX where none says a number.
//
//   root  of the file system with proc/self/cgroup and sys/fs/cgroup: "" but in tests
int64_t ControlGroupMemoryLimit(const std::string& root);

// Memory of this process that is no file's, as the kernel counts it in /proc/self/status; 0 where
// it does not say.
int64_t ResidentBytes();
// The most that it had since ForgetPeakResidentBytes, or since it began where the kernel does not
// let it forget.
int64_t PeakResidentBytes();
void ForgetPeakResidentBytes();

}  // namespace distro::worker
