// Compiled for the baseline of the architecture, nothing contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_exact.h"

namespace distro {

constexpr ExactKernels kExact128 = vector::MakeExactKernels<4>();

}  // namespace distro
