// The host memory that a process may use. Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace distro {

// The machine's memory or the control group's limit, whichever is less.
int64_t HostMemoryBytes();

// Plans leave 1/kHostReserveShare of it unused, because a process cannot get all memory.
inline constexpr int64_t kHostReserveShare = 16;

// The lowest of memory.max (version 2) and memory.limit_in_bytes (version 1) of this process's
// control group and its ancestors; INT64_MAX if there is no limit.
//
//   root  of the file system with proc/self/cgroup and sys/fs/cgroup: "" but in tests
int64_t ControlGroupMemoryLimit(const std::string& root);

// Resident memory of this process that is not backed by files, from /proc/self/status; 0 if the
// kernel does not provide it.
int64_t ResidentBytes();
// The peak of ResidentBytes since ForgetPeakResidentBytes, or since the process started if the
// kernel cannot reset it.
int64_t PeakResidentBytes();
void ForgetPeakResidentBytes();

// Training allocates the same tensors in every step. Makes the C library keep freed memory for the
// next step, instead of returning it to the kernel, which clears every page again; and use one heap
// for all threads. For the whole process: call it before other threads start.
void KeepFreedMemory();
// Returns freed memory to the kernel, and takes the next `bytes` from it in huge pages, if the
// kernel has some: the processor then finds their addresses faster. Has an effect only after
// KeepFreedMemory. Reserves addresses, no memory; does without if it cannot.
void ReserveHugePages(int64_t bytes);

}  // namespace distro
