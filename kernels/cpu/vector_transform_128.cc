// Compiled for the baseline of the architecture, multiply-adds contracted (kernels/CMakeLists.txt).
#include "kernels/cpu/vector_transform.h"

namespace distro {

constexpr TransformKernels kTransform128 = vector::MakeTransformKernels<4>();

}  // namespace distro
