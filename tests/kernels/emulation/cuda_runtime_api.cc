#include "tests/kernels/emulation/cuda_runtime_api.h"

#include <cstring>
#include <utility>

#include "tests/kernels/emulation/group.h"

namespace distro::cuda {
namespace {

using testing::EmulatedGpu;

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t Fail(cudaError_t error) { return last_error = error; }

EmulatedGpu* Current() { return EmulatedGpu::Find(current_device); }

// nullptr if there is no current device.
EmulatedStream* Named(EmulatedStream* stream) {
  if (stream != nullptr) return stream;
  EmulatedGpu* const gpu = Current();
  return gpu == nullptr ? nullptr : gpu->default_stream();
}

// Calls work(stream).
template <typename Work>
cudaError_t On(EmulatedStream* stream, const Work& work) {
  stream = Named(stream);
  if (stream == nullptr) return Fail(cudaErrorInvalidDevice);
  work(*stream);
  return cudaSuccess;
}

// False for nullptr and for memory of another GPU.
bool MayUse(EmulatedStream* stream, const void* memory) {
  stream = Named(stream);
  const EmulatedGpu* const owner = EmulatedGpu::OwnerOf(memory);
  return stream != nullptr && memory != nullptr && (owner == nullptr || owner == stream->gpu());
}

const std::unique_ptr<Device> host = MakeHostDevice();  // page-locked memory is like any other here

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
  }
  return "unknown";
}
const char* cudaGetErrorString(cudaError_t) { return "of the emulation"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = EmulatedGpu::Count();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (EmulatedGpu::Find(device) == nullptr) return Fail(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device) {
  const EmulatedGpu* const gpu = EmulatedGpu::Find(device);
  if (gpu == nullptr) return Fail(cudaErrorInvalidDevice);
  *value = gpu->multiprocessors();
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() {
  EmulatedGpu* const gpu = Current();
  if (gpu == nullptr) return Fail(cudaErrorInvalidDevice);
  gpu->Reset();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  EmulatedGpu* const gpu = Current();
  if (gpu == nullptr) return Fail(cudaErrorInvalidDevice);
  *memory = gpu->Allocate(bytes);
  return *memory == nullptr ? Fail(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  EmulatedGpu* const gpu = Current();
  if (gpu == nullptr) return Fail(cudaErrorInvalidDevice);
  return gpu->Free(memory) ? cudaSuccess : Fail(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  if (bytes > EmulatedGpu::kMemoryBytes) return Fail(cudaErrorMemoryAllocation);
  const absl::StatusOr<void*> allocated = host->Allocate(bytes);
  *memory = allocated.value_or(nullptr);
  return allocated.ok() ? cudaSuccess : Fail(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* memory) {
  host->Free(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(EmulatedStream** stream, unsigned flags) {
  EmulatedGpu* const gpu = Current();
  if (gpu == nullptr) return Fail(cudaErrorInvalidDevice);
  if (flags != cudaStreamNonBlocking) return Fail(cudaErrorInvalidValue);  // not emulated
  *stream = gpu->AddStream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(EmulatedStream* stream) {
  stream->gpu()->RemoveStream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(EmulatedStream* stream) {
  return On(stream, [](EmulatedStream& s) { s.gpu()->Await(&s); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new testing::EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, EmulatedStream* stream) {
  return On(stream, [&](EmulatedStream& s) { s.Record(event); });
}
cudaError_t cudaStreamWaitEvent(EmulatedStream* stream, cudaEvent_t event) {
  return On(stream, [&](EmulatedStream& s) { s.Wait(*event); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            EmulatedStream* stream) {
  const bool in = kind == cudaMemcpyHostToDevice;
  const void* const host_side = in ? from : to;
  if (host_side == nullptr || !MayUse(stream, in ? to : from)) return Fail(cudaErrorInvalidValue);
  return On(stream, [&](EmulatedStream& s) {
    const auto copy = [=] { std::memcpy(to, from, bytes); };
    if (!in) return s.Enqueue(copy);
    s.Enqueue([=] { std::memset(to, 0xFF, bytes); });
    s.EnqueueLate(copy);
  });
}
cudaError_t cudaMemsetAsync(void* memory, int byte, size_t bytes, EmulatedStream* stream) {
  if (!MayUse(stream, memory)) return Fail(cudaErrorInvalidValue);
  return On(stream,
            [=](EmulatedStream& s) { s.Enqueue([=] { std::memset(memory, byte, bytes); }); });
}

cudaError_t LaunchOnStream(EmulatedStream* stream, unsigned groups, unsigned threads,
                           std::function<void()> kernel) {
  if (groups == 0 || threads == 0) return Fail(cudaErrorInvalidConfiguration);
  EmulatedStream* const named = Named(stream);
  if (named == nullptr || named->gpu() != Current()) return Fail(cudaErrorInvalidResourceHandle);
  named->Enqueue([=, kernel = std::move(kernel)] { testing::RunKernel(groups, threads, kernel); });
  return cudaSuccess;
}

}  // namespace distro::cuda
