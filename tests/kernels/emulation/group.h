// Runs kernels on the calling thread, as groups of threads that each have a stack of their own: one
// runs until it waits for others, then the next. The order is the same in every run: groups and
// threads start with the last one, and after each barrier another thread is first, so that code
// which relies on an order fails.
//
// Shared memory starts as NaN; a group finds what the one before it left. For the thread sanitizer,
// a thread of a group is a thread: two that use a word without a barrier between them are a race,
// in whatever order they run.
#pragma once

#include <cstdint>
#include <functional>

// Shared memory is in a section of its own; groups use it one after another.
#define DISTRO_SHARED_MEMORY static __attribute__((section("emulated_shared_memory"), aligned(16)))

namespace distro::testing {

// Of the thread that runs. Kernels have one dimension.
struct KernelIndex {
  unsigned x = 0;
};
extern KernelIndex threadIdx, blockIdx, gridDim;

// Calls kernel() on each of the threads, which are whole warps. One kernel of the process runs at a
// time. Aborts if a thread ends while others of its group wait for it.
void RunKernel(unsigned groups, unsigned threads, const std::function<void()>& kernel);

// Called by a kernel on every thread of the group, or of the warp.
void AwaitGroup();
uint64_t ValueOfLaneAbove(uint64_t value, unsigned lanes);  // the own one if there is none

// Atomic additions by kernels that ran on the calling thread.
extern thread_local int64_t atomic_additions;

}  // namespace distro::testing
