// Compiled for AVX2 and FMA, multiply-adds contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_transform.h"

namespace distro {

constexpr TransformKernels kTransform256 = vector::MakeTransformKernels<8>();

}  // namespace distro
