// A GPU on the CPU: the code of kernels/cuda's blocks run thread after thread, phase after phase,
// over shared memory that starts as NaN. It gives the bits that a GPU gives: nothing is contracted
// on either side (kernels/cuda/block.h). It shows the arithmetic, bounds and phases; not launches,
// barriers in the wrong place within a phase, or speed.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/block.h"
#include "kernels/cuda/gpu.h"
#include "tests/kernels/waiting_backend.h"

namespace distro::testing {

enum class EmulatedOrder {
  kAtOnce,
  // Nothing happens before Finish: who looks at a result before it, or lets go of what was given,
  // is seen.
  kAtFinish,
};

// Its memory is the host's, but copies are needed; fresh memory is NaN.
std::unique_ptr<cuda::Gpu> MakeEmulatedGpu(EmulatedOrder order);

// The CUDA backend over such a GPU, at once. Spans may be any host memory.
std::unique_ptr<WaitingBackend> MakeEmulatedCudaBackend();

// u of one block, as reference::InverseInteger.
void EmulatedInverseInteger(const BlockVotes& votes, int32_t* u);

// reference::TopK: k positions, ascending, of coefficients in natural order, and the values there.
void EmulatedSelectLargest(const float* coefficients, int k, uint16_t* positions, float* values);

}  // namespace distro::testing
