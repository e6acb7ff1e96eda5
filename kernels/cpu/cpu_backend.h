// The backends of a CPU, and which of them this one can run.
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

// The fast one of one vector width.
std::unique_ptr<Backend> MakeVectorBackend(const VectorKernels& kernels);

// Never empty; narrowest first. MakeCpuBackend takes the last.
std::vector<VectorKernels> SupportedVectorKernels();

}  // namespace distro
