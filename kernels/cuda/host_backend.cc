// MakeCudaHostBackend: arrays are copied to the device, given to the device's backend, and copied back.
#include <cuda_runtime_api.h>

#include <utility>

#include "common/base/status_macros.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

// A host array's copy, as far off alignment as the array is.
class Copied {
 public:
  template <typename T>
  absl::Span<T> In(absl::Span<T> host) {
    const size_t shift = reinterpret_cast<uintptr_t>(host.data()) % 16;
    const size_t bytes = host.size() * sizeof(T);
    CheckCuda(buffer_.Reserve(bytes + 16));
    auto* device = static_cast<char*>(buffer_.data()) + shift;
    CheckCuda(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice), "copy to the device");
    return {reinterpret_cast<T*>(device), host.size()};
  }
  template <typename T>
  static void Out(absl::Span<const T> device, absl::Span<T> host) {
    CheckCuda(StatusOfCuda(
        cudaMemcpy(host.data(), device.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost),
        "copy from the device"));
  }

 private:
  DeviceBuffer buffer_;
};

class HostBackend : public Backend {
 public:
  explicit HostBackend(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  void Compress(const MatrixShape& matrix, BlockRange blocks, const CompressOptions& options,
                absl::Span<const float> gradient, absl::Span<float> momentum,
                absl::Span<uint16_t> positions, absl::Span<float> values) override {
    const auto m = arrays_[1].In(momentum);
    const auto p = arrays_[2].In(positions);
    const auto v = arrays_[3].In(values);
    device_->Compress(matrix, blocks, options, arrays_[0].In(gradient), m, p, v);
    Copied::Out<float>(m, momentum);
    Copied::Out<uint16_t>(p, positions);
    Copied::Out<float>(v, values);
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, int k,
                absl::Span<const uint16_t> positions, absl::Span<const float> values,
                absl::Span<float> momentum) override {
    const auto m = arrays_[0].In(momentum);
    device_->Feedback(matrix, blocks, k, arrays_[1].In(positions), arrays_[2].In(values), m);
    Copied::Out<float>(m, momentum);
  }

  absl::Status Apply(const MatrixShape& matrix, BlockRange blocks, const UpdateOptions& options,
                     const VotesView& votes, absl::Span<float> parameters) override {
    const VotesView view = {.offsets = arrays_[0].In(votes.offsets),
                            .positions = arrays_[1].In(votes.positions),
                            .values = arrays_[2].In(votes.values)};
    const auto p = arrays_[3].In(parameters);
    const absl::Status applied = device_->Apply(matrix, blocks, options, view, p);
    Copied::Out<float>(p, parameters);
    return applied;
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    const auto o = arrays_[2].In(out);
    device_->Lookahead(eta, arrays_[0].In(parameters), arrays_[1].In(momentum), o);
    Copied::Out<float>(o, out);
  }

  uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) override {
    return device_->StateHash(first_index, arrays_[0].In(parameters));
  }

  double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) override {
    return device_->SumOfSquares(matrix, arrays_[0].In(gradient));
  }

 private:
  const std::unique_ptr<Backend> device_;
  Copied arrays_[4];
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaHostBackend() {
  DISTRO_ASSIGN_OR_RETURN(std::unique_ptr<Backend> device, MakeCudaBackend(nullptr));
  return std::make_unique<HostBackend>(std::move(device));
}

}  // namespace distro::cuda
