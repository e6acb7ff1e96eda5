// Linked in the cuda preset: the GPU's backend, where there is a GPU.
#include "kernels/cuda/cuda_backend.h"
#include "tests/kernels/backends.h"

namespace distro::testing {

std::unique_ptr<Backend> CudaOnThisMachine() {
  if (cuda::DeviceCount() == 0) return nullptr;
  return cuda::MakeCudaHostBackend().value();
}

}  // namespace distro::testing
