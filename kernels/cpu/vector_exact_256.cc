// Compiled for AVX2 and FMA, nothing contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_exact.h"

namespace distro {

constexpr ExactKernels kExact256 = vector::MakeExactKernels<8>();

}  // namespace distro
