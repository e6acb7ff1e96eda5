// Linked in the cuda preset: the GPU's backend, where there is a GPU.
#include "kernels/cuda/cuda_backend.h"
#include "tests/kernels/backends.h"

namespace distro::testing {

std::unique_ptr<cuda::Gpu> GpuOnThisMachine() {
  return cuda::DeviceCount() == 0 ? nullptr : cuda::MakeGpu(/*stream=*/nullptr).value();
}

std::unique_ptr<Backend> CudaOnThisMachine() {
  std::unique_ptr<cuda::Gpu> gpu = GpuOnThisMachine();
  return gpu == nullptr ? nullptr : cuda::MakeHostBackend(std::move(gpu));
}

}  // namespace distro::testing
