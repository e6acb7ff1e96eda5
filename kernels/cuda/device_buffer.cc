#include "kernels/cuda/device_buffer.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/launch.h"

namespace distro::cuda {

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

absl::Status DeviceBuffer::Reserve(size_t bytes) {
  if (bytes <= size_) return absl::OkStatus();
  cudaFree(data_);
  data_ = nullptr;
  size_ = 0;
  const absl::Status allocated = StatusOfCuda(cudaMalloc(&data_, bytes), "device memory");
  if (allocated.ok()) size_ = bytes;
  return allocated;
}

}  // namespace distro::cuda
