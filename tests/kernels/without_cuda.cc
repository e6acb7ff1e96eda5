// Linked where DISTRO_CUDA is off.
#include "tests/kernels/backends.h"

namespace distro::testing {

std::unique_ptr<WaitingBackend> CudaOnThisMachine() { return nullptr; }
std::unique_ptr<cuda::Gpu> GpuOnThisMachine() { return nullptr; }

}  // namespace distro::testing
