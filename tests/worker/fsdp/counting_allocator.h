// A CPU allocator for Torch that counts what each thread has allocated and not freed, and the most
// of it.
#pragma once

#include <cstdint>
#include <functional>

#include "worker/torch/torch.h"

namespace distro::worker::testing {

// Takes Torch's CPU memory in this process from now on; for ever, since tensors may outlive any
// scope. What a thread allocated counts for it, whoever frees it.
void CountCpuMemory();

struct ThreadMemory {
  int64_t now = 0;
  int64_t peak = 0;
};
// Of the calling thread, since it began or since ResetThreadPeak. Requires CountCpuMemory.
ThreadMemory CountedMemory();
void ResetThreadPeak();

// The same for the thread that called this function, from any thread.
std::function<ThreadMemory()> CountedMemoryOfThisThread();

}  // namespace distro::worker::testing
