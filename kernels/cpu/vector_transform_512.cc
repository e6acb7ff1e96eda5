// Compiled for AVX-512 F, BW, DQ and VL, multiply-adds contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_transform.h"

namespace distro {

constexpr TransformKernels kTransform512 = vector::MakeTransformKernels<16>();

}  // namespace distro
