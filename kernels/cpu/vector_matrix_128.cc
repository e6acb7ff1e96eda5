// Compiled for the compiler's baseline, multiply-adds contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_matrix.h"

namespace distro {

constexpr MatrixKernels kMatrix128 = vector::MakeMatrixKernels<4>();

}  // namespace distro
