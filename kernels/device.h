// The memory of the device that a Backend works on, seen from the host, and the order of what the
// device is given. Copies and the Backend's Enqueue functions are done one after the other in the
// order in which they were called; Finish waits for them. On a CPU the device's memory is the
// host's, and everything is done when a call returns.
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

  // Arrays have to be copied there and back. False: the host's memory is the device's.
  virtual bool has_own_memory() const = 0;

  // 256-byte aligned, not cleared. ResourceExhausted: there is no memory.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  // nullptr: nothing. Memory that something enqueued still uses may be freed: it is not given away
  // before that is done.
  virtual void Free(void* memory) = 0;

  // Enqueued. The host's memory stays alive and unchanged until Finish, or is written by then.
  virtual void CopyIn(const void* host, size_t bytes, void* device) = 0;
  virtual void CopyOut(const void* device, size_t bytes, void* host) = 0;
  virtual void Fill(void* device, unsigned char byte, size_t bytes) = 0;

  // Waits until everything is done. The first error of what was enqueued since the last Finish.
  virtual absl::Status Finish() = 0;
};

std::unique_ptr<Device> MakeHostDevice();

// Memory of a device that grows when needed.
class DeviceBuffer {
 public:
  // `device` is borrowed.
  explicit DeviceBuffer(Device* device) : device_(device) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ~DeviceBuffer() { device_->Free(data_); }

  // At least `bytes`; what was there is lost when it grows.
  absl::Status Reserve(size_t bytes);
  void* data() const { return data_; }

 private:
  Device* const device_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// An array of the host with a twin on the device; the same memory where the device has none of its
// own.
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
  // Enqueued, whole.
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
