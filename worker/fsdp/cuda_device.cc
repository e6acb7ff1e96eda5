#include "worker/fsdp/cuda_device.h"

#include "absl/strings/str_cat.h"
#include "worker/plan/memory_plan.h"
#include "worker/torch/cuda_torch.h"

namespace distro::worker {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": ", cudaGetErrorString(error)));
}

}  // namespace

int VisibleGpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

absl::Status UseGpu(int device) {
  return CatchTorch("GPU", [&] {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    return CudaStatus(cudaFree(nullptr), absl::StrCat("GPU ", device));  // makes the context
  });
}

CUstream_st* CurrentStream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}

void* AllocateOnGpu(size_t bytes) {
  void* memory = nullptr;
  const absl::Status status = CatchTorch("GPU memory", [&] {
    memory = allocator::raw_alloc(bytes);
    return absl::OkStatus();
  });
  return status.ok() ? memory : nullptr;
}

void FreeOnGpu(void* memory) { allocator::raw_delete(memory); }

// One size on all GPUs: Torch's own choice depends on the GPU. The form is :KIB:PARTS.
// TF32 has the 10 bits of f16: who wants speed has bf16, and who asks for f32 has it.
void SetUpCublas() {
  constexpr int64_t kParts = 8;  // as cuBLAS's documentation recommends for Hopper
  c10::utils::set_env("CUBLAS_WORKSPACE_CONFIG",
                      absl::StrCat(":", kCublasWorkspaceBytes / kParts / 1024, ":", kParts).c_str(),
                      /*overwrite=*/false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

int64_t CublasWorkspaceBytes() { return static_cast<int64_t>(at::cuda::getChosenWorkspaceSize()); }

absl::StatusOr<GpuMemory> MemoryOfGpu(int device) {
  return CatchTorch("GPU memory", [&]() -> absl::StatusOr<GpuMemory> {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
    allocator::emptyCache();
    size_t free = 0, total = 0;
    const absl::Status status =
        CudaStatus(cudaMemGetInfo(&free, &total), absl::StrCat("memory of GPU ", device));
    if (!status.ok()) return status;
    return GpuMemory{.free_bytes = static_cast<int64_t>(free),
                     .total_bytes = static_cast<int64_t>(total)};
  });
}

}  // namespace distro::worker
