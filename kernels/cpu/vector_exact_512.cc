// Compiled for AVX-512 F, BW, DQ and VL, nothing contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_exact.h"

namespace distro {

constexpr ExactKernels kExact512 = vector::MakeExactKernels<16>();

}  // namespace distro
