// The memory and the queue of the device that a Backend uses. Copies and the Backend's operations
// run in the order of the calls; Finish waits for them. On a CPU, device memory is host memory, and
// a call returns when the work is done.
//
//   void* parameters = *device->Allocate(bytes);
//   device->CopyIn(host, bytes, parameters);  // then operations of a Backend
//   device->CopyOut(parameters, bytes, host);
//   DISTRO_RETURN_IF_ERROR(device->Finish());
//
// One caller at a time, from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace distro {

class Device {
 public:
  virtual ~Device() = default;

  // True if arrays must be copied to the device and back; false if it uses host memory.
  virtual bool has_own_memory() const = 0;

  // 256-byte aligned, uninitialised. ResourceExhausted: not enough memory.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  // nullptr is ignored. Memory that enqueued work still uses may be freed: it is reused only after
  // that work is done.
  virtual void Free(void* memory) = 0;

  // Enqueued. The caller keeps the host memory alive, and unchanged, until Finish.
  virtual void CopyIn(const void* host, size_t bytes, void* device) = 0;
  virtual void CopyOut(const void* device, size_t bytes, void* host) = 0;
  virtual void Fill(void* device, unsigned char byte, size_t bytes) = 0;

  // Waits until all enqueued work is done. Returns the first error since the last Finish.
  virtual absl::Status Finish() = 0;
};

std::unique_ptr<Device> MakeHostDevice();

// Device memory that grows on demand.
class DeviceBuffer {
 public:
  // `device` is borrowed.
  explicit DeviceBuffer(Device* device) : device_(device) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ~DeviceBuffer() { device_->Free(data_); }

  // Makes room for `bytes`. Growing discards the content.
  absl::Status Reserve(size_t bytes);
  void* data() const { return data_; }

 private:
  Device* const device_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// A host array with a copy on the device. Both are the same memory if the device uses host memory.
template <typename T>
class TwinArray {
 public:
  explicit TwinArray(Device* device) : device_(device), twin_(device) {}

  // New elements are 0 on the host; on the device all of them are unspecified.
  absl::Status Resize(size_t elements) {
    host_.resize(elements);
    return device_->has_own_memory() ? twin_.Reserve(elements * sizeof(T)) : absl::OkStatus();
  }
  absl::Span<T> host() { return absl::MakeSpan(host_); }
  absl::Span<const T> host() const { return host_; }
  absl::Span<T> device() {
    return device_->has_own_memory() ? absl::MakeSpan(static_cast<T*>(twin_.data()), host_.size())
                                     : host();
  }
  // Copies the whole array; enqueued.
  void CopyIn() {
    if (device_->has_own_memory()) device_->CopyIn(host_.data(), bytes(), twin_.data());
  }
  void CopyOut() {
    if (device_->has_own_memory()) device_->CopyOut(twin_.data(), bytes(), host_.data());
  }
  void Fill(unsigned char byte) { device_->Fill(device().data(), byte, bytes()); }

 private:
  size_t bytes() const { return host_.size() * sizeof(T); }

  Device* const device_;
  std::vector<T> host_;
  DeviceBuffer twin_;
};

}  // namespace distro
