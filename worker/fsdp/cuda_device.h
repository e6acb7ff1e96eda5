// Selects and queries the GPUs that ranks use. Only in builds with DISTRO_CUDA. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace distro::worker {

// The number of GPUs that this process may use; 0 without a driver.
int VisibleGpus();

// Makes GPU `device` the calling thread's current device, for Torch and CUDA. Unavailable: CUDA
// refuses it.
absl::Status UseGpu(int device);

// The calling thread's current stream of a GPU.
CUstream_st* CurrentStream(int device);

// Allocates from Torch's caching allocator, for the thread's GPU and current stream. nullptr: there
// is not enough memory.
void* AllocateOnGpu(size_t bytes);
void FreeOnGpu(void* memory);

// Settings of the process, for all GPUs. Call before the first product: Torch reads the first once.
// * Every cuBLAS handle gets a workspace of kCublasWorkspaceBytes, unless the environment's
//   CUBLAS_WORKSPACE_CONFIG says another.
// * Products of f32 are not computed in TF32, whatever TORCH_ALLOW_TF32_CUBLAS_OVERRIDE says.
void SetUpCublas();
// The workspace of a handle, of Torch's caching allocator.
int64_t CublasWorkspaceBytes();

struct GpuMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};
// Returns to the driver first what Torch's allocator keeps of freed memory, on all GPUs: after an
// attempt that ran out of memory that is nearly everything.
absl::StatusOr<GpuMemory> MemoryOfGpu(int device);

}  // namespace distro::worker
