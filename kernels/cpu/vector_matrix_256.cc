// Compiled for AVX2 and FMA, multiply-adds contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_matrix.h"

namespace distro {

constexpr MatrixKernels kMatrix256 = vector::MakeMatrixKernels<8>();

}  // namespace distro
