// Emulates a GPU on the CPU: compiles kernels/cuda/*.cu and gpu.cc, launches and all, for the CPU,
// over streams that do nothing before they are waited for (emulation/device.h) and kernels whose
// threads run in turn (emulation/group.h). It gives the bits of a GPU, because both compile without
// contraction (kernels/cuda/block.h). It tests everything but speed and what nvcc makes of the
// code.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/block.h"
#include "kernels/cuda/gpu.h"
#include "tests/kernels/waiting_backend.h"

namespace distro::testing {

// Its memory is host memory, but copies are needed. New memory is NaN; freed memory is given out
// again at once, while enqueued work still uses it. It has few multiprocessors, so that a group has
// several blocks to do.
std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(int multiprocessors = 1);

// With cudaMalloc's emulation instead.
std::unique_ptr<cuda::Gpu> MakeEmulatedGpuWithCudaMalloc();

// The CUDA backend over a GPU of MakeEmulatedGpu. Spans may be any host memory.
std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend(int multiprocessors = 1);

// u of one block, as reference::InverseInteger.
void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u);

// reference::TopK: k positions, ascending, of coefficients in natural order, and the values there.
void EmulatedSelectLargest(const float* coefficients, int k, uint16_t* positions, float* values);

// c of 64 samples x: one axis of the transform of Compress.
void EmulatedForwardTransform(const float* x, float* c);

}  // namespace distro::testing
