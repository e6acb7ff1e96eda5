// For tests: a Device that passes everything on to another one. Derive from it to watch some calls.
#pragma once

#include <memory>
#include <utility>

#include "kernels/device.h"

namespace distro::testing {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  bool has_own_memory() const override { return device_->has_own_memory(); }
  absl::StatusOr<void*> Allocate(size_t bytes) override { return device_->Allocate(bytes); }
  void Free(void* memory) override { device_->Free(memory); }
  absl::StatusOr<void*> AllocateHost(size_t bytes) override { return device_->AllocateHost(bytes); }
  void FreeHost(void* memory) override { device_->FreeHost(memory); }
  void CopyIn(const void* host, size_t bytes, void* device) override {
    device_->CopyIn(host, bytes, device);
  }
  void CopyOut(const void* device, size_t bytes, void* host) override {
    device_->CopyOut(device, bytes, host);
  }
  void Fill(void* device, unsigned char byte, size_t bytes) override {
    device_->Fill(device, byte, bytes);
  }
  void CopyInBeside(const void* host, size_t bytes, void* device) override {
    device_->CopyInBeside(host, bytes, device);
  }
  void AwaitCopies() override { device_->AwaitCopies(); }
  absl::Status Finish() override { return device_->Finish(); }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace distro::testing
