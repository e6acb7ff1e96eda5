// Device memory that grows when needed, for the backends of cuda_backend.h. Not for kernels' callers that plan their memory.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace distro::cuda {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  // At least `bytes`; what was there is lost when it grows, for which the device is synchronised.
  absl::Status Reserve(size_t bytes);
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace distro::cuda
