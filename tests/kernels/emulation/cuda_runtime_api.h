// What CUDA's header of this name gives to kernels/cuda, as far as it is used there: devices,
// memory, streams and events on the CPU (device.h). As in CUDA, each thread has a current device
// and a last error.
//
// All is in distro::cuda, and streams are of another type, so that functions over them have other
// symbols than the real ones and can be linked beside them.
#pragma once

#include <cstddef>
#include <functional>

#include "tests/kernels/emulation/device.h"

#define CUstream_st EmulatedStream
#define DeviceCount EmulatedDeviceCount  // has no stream in its symbol

namespace distro::cuda {

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidConfiguration,
  cudaErrorInvalidDevice,
  cudaErrorInvalidResourceHandle,
};
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceReset();

constexpr unsigned cudaHostAllocPortable = 1;
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);

// A stream of nullptr is the current device's.
constexpr unsigned cudaStreamNonBlocking = 1;
cudaError_t cudaStreamCreateWithFlags(EmulatedStream** stream, unsigned flags);
cudaError_t cudaStreamDestroy(EmulatedStream* stream);
cudaError_t cudaStreamSynchronize(EmulatedStream* stream);

using cudaEvent_t = testing::EmulatedEvent*;
constexpr unsigned cudaEventDisableTiming = 2;
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, EmulatedStream* stream);
cudaError_t cudaStreamWaitEvent(EmulatedStream* stream, cudaEvent_t event);

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            EmulatedStream* stream);
cudaError_t cudaMemsetAsync(void* memory, int byte, size_t bytes, EmulatedStream* stream);

// Of cudaLaunchKernelEx: `kernel` runs on every thread.
cudaError_t LaunchOnStream(EmulatedStream* stream, unsigned groups, unsigned threads,
                           std::function<void()> kernel);

}  // namespace distro::cuda
