#include "kernels/cuda/gpu.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

void* AllocateWithCuda(size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
  cudaGetLastError();  // or the next launch would report it as its own
  return nullptr;
}

class RealGpu final : public Gpu {
 public:
  RealGpu(int device, Stream stream, GpuAllocator allocator)
      : device_(device), stream_(stream), allocator_(std::move(allocator)) {}
  ~RealGpu() override {
    if (!Use().ok()) return;
    if (event_ != nullptr) cudaEventDestroy(event_);
    if (copies_ != nullptr) cudaStreamDestroy(copies_);
  }

  // Makes the second queue. Call once, first.
  absl::Status Open() {
    DISTRO_RETURN_IF_ERROR(
        StatusOfCuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "copy stream"));
    return StatusOfCuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event");
  }

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    DISTRO_RETURN_IF_ERROR(Use());
    void* const memory = allocator_.allocate(bytes);
    if (memory != nullptr) return memory;
    return absl::ResourceExhaustedError(
        absl::StrCat("GPU ", device_, " has no memory for ", bytes, " bytes"));
  }
  void Free(void* memory) override {
    if (memory != nullptr && Use().ok()) allocator_.free(memory);
  }

  absl::StatusOr<void*> AllocateHost(size_t bytes) override {
    DISTRO_RETURN_IF_ERROR(Use());
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess) return memory;
    cudaGetLastError();  // or the next launch would report it as its own
    return absl::ResourceExhaustedError(
        absl::StrCat("the host has no page-locked memory for ", bytes, " bytes"));
  }
  void FreeHost(void* memory) override {
    if (memory != nullptr && Use().ok()) cudaFreeHost(memory);
  }

  void CopyIn(const void* host, size_t bytes, void* device) override {
    Copy(device, host, bytes, cudaMemcpyHostToDevice, stream_);
  }
  void CopyOut(const void* device, size_t bytes, void* host) override {
    Copy(host, device, bytes, cudaMemcpyDeviceToHost, stream_);
  }
  void Fill(void* device, unsigned char byte, size_t bytes) override {
    Keep([&] { return StatusOfCuda(cudaMemsetAsync(device, byte, bytes, stream_), "memset"); });
  }
  void CopyInBeside(const void* host, size_t bytes, void* device) override {
    Keep([&] { return Order(stream_, copies_); });
    Copy(device, host, bytes, cudaMemcpyHostToDevice, copies_);
  }
  void AwaitCopies() override {
    Keep([&] { return Order(copies_, stream_); });
  }
  absl::Status Finish() override {
    Keep([&] { return StatusOfCuda(cudaStreamSynchronize(copies_), "synchronise copies"); });
    Keep([&] { return StatusOfCuda(cudaStreamSynchronize(stream_), "synchronise"); });
    return std::exchange(failed_, absl::OkStatus());
  }

  void CompressSigns(const SignCompressOptions& options,
                     absl::Span<const CompressSignsTensor> tensors) override {
    Keep([&] { return cuda::CompressSigns(options, tensors, stream_); });
  }
  void FeedbackSigns(const FeedbackSignsArguments& arguments) override {
    Keep([&] { return cuda::FeedbackSigns(arguments, stream_); });
  }
  void ApplyVotes(const ApplyVotesArguments& arguments) override {
    Keep([&] { return cuda::ApplyVotes(arguments, stream_); });
  }
  void ApplyDeltas(const ApplyDeltasArguments& arguments) override {
    Keep([&] { return cuda::ApplyDeltas(arguments, stream_); });
  }
  void FindNotFinite(float beta, const float* begin, const float* x, const float* error,
                     int64_t elements, uint32_t* not_finite) override {
    Keep([&] { return cuda::FindNotFinite(beta, begin, x, error, elements, not_finite, stream_); });
  }
  void CompressDeltas(const CompressDeltasArguments& arguments) override {
    Keep([&] { return cuda::CompressDeltas(arguments, stream_); });
  }
  void FeedbackDeltas(const FeedbackDeltasArguments& arguments) override {
    Keep([&] { return cuda::FeedbackDeltas(arguments, stream_); });
  }
  void DeltaSquares(const float* begin, const float* x, const float* error, int64_t elements,
                    double* moved, double* buffer) override {
    Keep([&] { return cuda::DeltaSquares(begin, x, error, elements, moved, buffer, stream_); });
  }
  void Lookahead(float eta, const float* parameters, const float* momentum, float* out,
                 int64_t elements) override {
    Keep([&] { return cuda::Lookahead(eta, parameters, momentum, out, elements, stream_); });
  }
  void StateHash(uint64_t first_index, const float* parameters, int64_t elements,
                 uint64_t* sum) override {
    Keep([&] { return cuda::StateHash(first_index, parameters, elements, sum, stream_); });
  }
  void SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                    double* row_sums) override {
    Keep([&] { return cuda::SumOfSquares(matrix, gradient, workspace, row_sums, stream_); });
  }

 private:
  absl::Status Use() const {
    return StatusOfCuda(cudaSetDevice(device_), absl::StrCat("GPU ", device_).c_str());
  }
  template <typename Work>
  void Keep(const Work& work) {
    absl::Status status = Use();
    if (status.ok()) status = work();
    if (failed_.ok()) failed_ = std::move(status);
  }
  void Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, Stream stream) {
    Keep([&] {
      return bytes == 0 ? absl::OkStatus()
                        : StatusOfCuda(cudaMemcpyAsync(to, from, bytes, kind, stream), "copy");
    });
  }
  // What is enqueued on `second` from now on runs after what is on `first` now. A wait keeps to the
  // event as it was recorded last before, so one event serves all.
  absl::Status Order(Stream first, Stream second) {
    DISTRO_RETURN_IF_ERROR(StatusOfCuda(cudaEventRecord(event_, first), "record an event"));
    return StatusOfCuda(cudaStreamWaitEvent(second, event_), "wait for an event");
  }

  const int device_;
  const Stream stream_;
  const GpuAllocator allocator_;
  Stream copies_ = nullptr;
  cudaEvent_t event_ = nullptr;
  absl::Status failed_;
};

}  // namespace

int DeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  return error == cudaSuccess ? count : 0;
}

absl::StatusOr<std::unique_ptr<Gpu>> MakeGpu(Stream stream, GpuAllocator allocator) {
  int device = 0;
  DISTRO_RETURN_IF_ERROR(StatusOfCuda(cudaGetDevice(&device), "current device"));
  if (allocator.allocate == nullptr)
    allocator = {.allocate = AllocateWithCuda, .free = [](void* memory) { cudaFree(memory); }};
  auto gpu = std::make_unique<RealGpu>(device, stream, std::move(allocator));
  DISTRO_RETURN_IF_ERROR(gpu->Open());
  return gpu;
}

}  // namespace distro::cuda
