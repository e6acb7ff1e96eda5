#include "kernels/device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "common/base/status_macros.h"

namespace distro {
namespace {

constexpr std::align_val_t kAlignment{256};

class HostDevice final : public Device {
 public:
  bool has_own_memory() const override { return false; }
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (memory == nullptr) return absl::ResourceExhaustedError("no memory");
    return memory;
  }
  void Free(void* memory) override { ::operator delete(memory, kAlignment); }
  absl::StatusOr<void*> AllocateHost(size_t bytes) override { return Allocate(bytes); }
  void FreeHost(void* memory) override { Free(memory); }
  void CopyIn(const void* host, size_t bytes, void* device) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void CopyOut(const void* device, size_t bytes, void* host) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void Fill(void* device, unsigned char byte, size_t bytes) override {
    if (bytes > 0) std::memset(device, byte, bytes);
  }
  void CopyInBeside(const void* host, size_t bytes, void* device) override {
    CopyIn(host, bytes, device);
  }
  void AwaitCopies() override {}
  absl::Status Finish() override { return absl::OkStatus(); }
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice() { return std::make_unique<HostDevice>(); }

absl::Status DeviceBuffer::Reserve(size_t bytes) {
  if (bytes <= size_) return absl::OkStatus();
  bytes = std::max(bytes, size_ + size_ / 2);
  Free();
  DISTRO_ASSIGN_OR_RETURN(
      data_, where_ == Where::kHost ? device_->AllocateHost(bytes) : device_->Allocate(bytes));
  size_ = bytes;
  return absl::OkStatus();
}

void DeviceBuffer::Free() {
  where_ == Where::kHost ? device_->FreeHost(data_) : device_->Free(data_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace distro
