// The memory and the queues of the device that a Backend uses. Copies and the Backend's operations
// run in the order of the calls; Finish waits for them. On a CPU, device memory is host memory, and
// a call returns when the work is done.
//
//   void* parameters = *device->Allocate(bytes);
//   device->CopyIn(host, bytes, parameters);  // then operations of a Backend
//   device->CopyOut(parameters, bytes, host);
//   DISTRO_RETURN_IF_ERROR(device->Finish());
//
// A second queue copies to the device what later operations need, while it works on earlier ones:
//
//   device->CopyInBeside(second, bytes, other);  // then operations that do not use `other`
//   device->AwaitCopies();                       // then operations that do
//
// One caller at a time, from any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

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
  // that work is done. Not the memory of a copy that neither AwaitCopies nor Finish has followed.
  virtual void Free(void* memory) = 0;

  // Host memory whose copies run while device and caller go on: page-locked if there is a GPU.
  // 256-byte aligned, uninitialised. ResourceExhausted: not enough memory.
  virtual absl::StatusOr<void*> AllocateHost(size_t bytes) = 0;
  // nullptr is ignored. Requires that Finish has followed the last copy.
  virtual void FreeHost(void* memory) = 0;

  // Enqueued. The caller keeps the host memory alive, and unchanged, until Finish.
  virtual void CopyIn(const void* host, size_t bytes, void* device) = 0;
  virtual void CopyOut(const void* device, size_t bytes, void* host) = 0;
  virtual void Fill(void* device, unsigned char byte, size_t bytes) = 0;

  // As CopyIn, but in the second queue: after the work enqueued so far, beside the work enqueued
  // later.
  virtual void CopyInBeside(const void* host, size_t bytes, void* device) = 0;
  // Work enqueued later runs after the copies that CopyInBeside has enqueued so far.
  virtual void AwaitCopies() = 0;

  // Waits until all enqueued work is done. Returns the first error since the last Finish.
  virtual absl::Status Finish() = 0;
};

std::unique_ptr<Device> MakeHostDevice();

// Memory that grows on demand.
class DeviceBuffer {
 public:
  enum class Where { kDevice, kHost };  // kHost: AllocateHost's
  // `device` is borrowed.
  explicit DeviceBuffer(Device* device, Where where = Where::kDevice)
      : device_(device), where_(where) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_),
        where_(other.where_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ~DeviceBuffer() { Free(); }

  // Makes room for `bytes`. Growing discards the content, and is by a half at least: page-locking
  // takes long, and results of rounds differ a little.
  absl::Status Reserve(size_t bytes);
  void* data() const { return data_; }

 private:
  void Free();

  Device* const device_;
  const Where where_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// A host array with a copy on the device. Both are the same memory if the device uses host memory.
template <typename T>
class TwinArray {
 public:
  explicit TwinArray(Device* device)
      : device_(device), host_(device, DeviceBuffer::Where::kHost), twin_(device) {}

  // A change of the size sets the elements to 0 on the host; on the device they are unspecified.
  absl::Status Resize(size_t elements) {
    if (elements == size_) return absl::OkStatus();
    const size_t bytes = elements * sizeof(T);
    absl::Status status = host_.Reserve(bytes);
    if (status.ok() && device_->has_own_memory()) status = twin_.Reserve(bytes);
    size_ = status.ok() ? elements : 0;
    std::fill_n(host().begin(), size_, T{});
    return status;
  }
  absl::Span<T> host() { return {static_cast<T*>(host_.data()), size_}; }
  absl::Span<const T> host() const { return {static_cast<const T*>(host_.data()), size_}; }
  absl::Span<T> device() {
    return device_->has_own_memory() ? absl::MakeSpan(static_cast<T*>(twin_.data()), size_)
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
  size_t bytes() const { return size_ * sizeof(T); }

  Device* const device_;
  DeviceBuffer host_;
  DeviceBuffer twin_;
  size_t size_ = 0;
};

}  // namespace distro
