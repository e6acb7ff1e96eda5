// Linked in the cuda preset: the GPU's backend, where there is a GPU.
#include <utility>

#include "kernels/cuda/cuda_backend.h"
#include "tests/kernels/backends.h"

namespace distro::testing {

std::unique_ptr<cuda::Gpu> GpuOnThisMachine() {
  return cuda::DeviceCount() == 0 ? nullptr : cuda::MakeGpu(/*stream=*/nullptr).value();
}

std::unique_ptr<WaitingBackend> CudaOnThisMachine() {
  std::unique_ptr<cuda::Gpu> gpu = GpuOnThisMachine();
  if (gpu == nullptr) return nullptr;
  std::unique_ptr<Backend> backend = cuda::MakeGpuBackend(gpu.get());
  return WaitingBackend::WithCopies(std::move(backend), std::move(gpu));
}

}  // namespace distro::testing
