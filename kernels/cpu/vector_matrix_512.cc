// Compiled for AVX-512, multiply-adds contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_matrix.h"

namespace distro {

constexpr MatrixKernels kMatrix512 = vector::MakeMatrixKernels<16>();

}  // namespace distro
