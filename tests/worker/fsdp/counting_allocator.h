// A CPU allocator for Torch that counts the bytes that each thread has allocated and not freed, and
// their peak.
#pragma once

#include <cstdint>
#include <functional>

#include "worker/torch/torch.h"

namespace distro::worker::testing {

// Replaces Torch's CPU allocator in this process for good, because tensors may outlive any scope.
// Memory counts for the thread that allocated it, whichever thread frees it. Turns oneDNN off,
// whose workspaces depend on the processor: without instructions for bf16 it packs a copy of each
// matrix.
void CountCpuMemory();

struct ThreadMemory {
  int64_t now = 0;
  int64_t peak = 0;
};
// The memory of the calling thread, since its start or ResetThreadPeak. Requires CountCpuMemory.
ThreadMemory CountedMemory();
void ResetThreadPeak();

// The same for the thread that called this function, from any thread.
std::function<ThreadMemory()> CountedMemoryOfThisThread();

}  // namespace distro::worker::testing
