// Emulates a GPU on the CPU: runs the block code of kernels/cuda over shared memory that starts as
// NaN. It gives the bits of a GPU, because both compile without contraction (kernels/cuda/block.h).
// It tests arithmetic, bounds and phases; not launches or speed.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/block.h"
#include "kernels/cuda/gpu.h"
#include "tests/kernels/waiting_backend.h"

namespace distro::testing {

enum class EmulatedOrder {
  kAtOnce,
  // Runs everything in Finish: code that reads a result earlier, or frees an argument too early,
  // fails.
  kAtFinish,
};

// How a group of threads runs.
enum class EmulatedThreads {
  // On the calling thread: thread after thread, phase after phase.
  kInTurn,
  // As on a GPU: every thread runs the whole kernel and waits at the barriers. The thread sanitizer
  // then sees two threads that use a word without a barrier between them. Slow.
  kReal,
};

// Its memory is host memory, but copies are needed; new memory is NaN.
std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(EmulatedOrder order,
                                           EmulatedThreads threads = EmulatedThreads::kInTurn);

// The CUDA backend over such a GPU, at once. Spans may be any host memory.
std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend(
    EmulatedThreads threads = EmulatedThreads::kInTurn);

// u of one block, as reference::InverseInteger.
void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u);

// reference::TopK: k positions, ascending, of coefficients in natural order, and the values there.
void EmulatedSelectLargest(const float* coefficients, int k, uint16_t* positions, float* values);

// c of 64 samples x: one axis of the transform of Compress.
void EmulatedForwardTransform(const float* x, float* c);

}  // namespace distro::testing
