// MakeHostBackend: arrays are copied to the device, given to the device's backend, and copied back.
#include <cstdint>
#include <utility>

#include "kernels/cuda/cuda_backend.h"

namespace distro::cuda {
namespace {

// A host array's copy, as far off alignment as the array is.
class Copied {
 public:
  explicit Copied(Gpu* gpu) : gpu_(gpu), buffer_(gpu) {}
  template <typename T>
  absl::Span<T> In(absl::Span<T> host) {
    const size_t shift = reinterpret_cast<uintptr_t>(host.data()) % 16;
    const size_t bytes = host.size() * sizeof(T);
    Must(buffer_.Reserve(bytes + 16));
    auto* device = static_cast<char*>(buffer_.data()) + shift;
    gpu_->CopyIn(host.data(), bytes, device);
    return {reinterpret_cast<T*>(device), host.size()};
  }
  template <typename T>
  void Out(absl::Span<const T> device, absl::Span<T> host) {
    gpu_->CopyOut(device.data(), host.size() * sizeof(T), host.data());
    Must(gpu_->Finish());
  }

 private:
  Gpu* const gpu_;
  DeviceBuffer buffer_;
};

class HostBackend final : public Backend {
 public:
  explicit HostBackend(std::unique_ptr<Gpu> gpu)
      : gpu_(std::move(gpu)), device_(MakeGpuBackend(gpu_.get())) {}

  void Compress(const MatrixShape& matrix, BlockRange blocks, const CompressOptions& options,
                absl::Span<const float> gradient, absl::Span<float> momentum,
                absl::Span<uint16_t> positions, absl::Span<float> values) override {
    const auto m = arrays_[1].In(momentum);
    const auto p = arrays_[2].In(positions);
    const auto v = arrays_[3].In(values);
    device_->Compress(matrix, blocks, options, arrays_[0].In(gradient), m, p, v);
    arrays_[1].Out<float>(m, momentum);
    arrays_[2].Out<uint16_t>(p, positions);
    arrays_[3].Out<float>(v, values);
  }

  void Feedback(const MatrixShape& matrix, BlockRange blocks, int k,
                absl::Span<const uint16_t> positions, absl::Span<const float> values,
                absl::Span<float> momentum) override {
    const auto m = arrays_[0].In(momentum);
    device_->Feedback(matrix, blocks, k, arrays_[1].In(positions), arrays_[2].In(values), m);
    arrays_[0].Out<float>(m, momentum);
  }

  absl::Status Apply(const MatrixShape& matrix, BlockRange blocks, const UpdateOptions& options,
                     const VotesView& votes, absl::Span<float> parameters) override {
    const VotesView view = {.offsets = arrays_[0].In(votes.offsets),
                            .positions = arrays_[1].In(votes.positions),
                            .values = arrays_[2].In(votes.values)};
    const auto p = arrays_[3].In(parameters);
    const absl::Status applied = device_->Apply(matrix, blocks, options, view, p);
    arrays_[3].Out<float>(p, parameters);
    return applied;
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) override {
    const auto o = arrays_[2].In(out);
    device_->Lookahead(eta, arrays_[0].In(parameters), arrays_[1].In(momentum), o);
    arrays_[2].Out<float>(o, out);
  }

  uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) override {
    return device_->StateHash(first_index, arrays_[0].In(parameters));
  }

  double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) override {
    return device_->SumOfSquares(matrix, arrays_[0].In(gradient));
  }

 private:
  const std::unique_ptr<Gpu> gpu_;
  const std::unique_ptr<Backend> device_;
  Copied arrays_[4] = {Copied(gpu_.get()), Copied(gpu_.get()), Copied(gpu_.get()),
                       Copied(gpu_.get())};
};

}  // namespace

std::unique_ptr<Backend> MakeHostBackend(std::unique_ptr<Gpu> gpu) {
  return std::make_unique<HostBackend>(std::move(gpu));
}

}  // namespace distro::cuda
