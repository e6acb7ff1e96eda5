// CPU backends: the reference, and vector versions selected by the CPU's instruction sets.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro {

// The plain reference: scalar loops, the executable specification.
std::unique_ptr<Backend> MakeReferenceBackend();

// The fastest implementation for the CPU this process runs on, chosen at run time: AVX-512, AVX2,
// or 128-bit vectors of the compiler's baseline, which every CPU has.
std::unique_ptr<Backend> MakeCpuBackend();

// A vector backend of the given width.
std::unique_ptr<Backend> MakeVectorBackend(const VectorKernels& kernels);

// Kernels that this CPU can run, narrowest first; never empty. MakeCpuBackend uses the last.
std::vector<VectorKernels> SupportedVectorKernels();

}  // namespace distro
