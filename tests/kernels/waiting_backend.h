// For tests: wraps a backend in synchronous functions of host arrays, which return an error for
// invalid blocks.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "kernels/device.h"

namespace distro::testing {

class WaitingBackend {
 public:
  // Passes host arrays to the backend without copies.
  explicit WaitingBackend(std::unique_ptr<Backend> backend,
                          std::unique_ptr<Device> device = MakeHostDevice())
      : device_(std::move(device)), backend_(std::move(backend)), copies_(false) {}
  // Copies arrays to the device and back.
  static std::unique_ptr<WaitingBackend> WithCopies(std::unique_ptr<Backend> backend,
                                                    std::unique_ptr<Device> device) {
    auto waiting = std::make_unique<WaitingBackend>(std::move(backend), std::move(device));
    waiting->copies_ = true;
    return waiting;
  }

  void CompressSigns(const SignCompressOptions& options, absl::Span<const TensorMomentum> tensors) {
    std::vector<Copied> copies(4 * tensors.size());
    std::vector<TensorMomentum> on_device(tensors.begin(), tensors.end());
    for (size_t i = 0; i < tensors.size(); ++i) {
      on_device[i].gradient = copies[4 * i].In(this, tensors[i].gradient);
      on_device[i].momentum = copies[4 * i + 1].In(this, tensors[i].momentum);
      on_device[i].positions = copies[4 * i + 2].In(this, tensors[i].positions);
      on_device[i].values = copies[4 * i + 3].In(this, tensors[i].values);
    }
    backend_->CompressSigns(options, on_device);
    for (size_t i = 0; i < tensors.size(); ++i) {
      Out<float>(on_device[i].momentum, tensors[i].momentum);
      Out<uint16_t>(on_device[i].positions, tensors[i].positions);
      Out<float>(on_device[i].values, tensors[i].values);
    }
    Finish();
  }
  void CompressSigns(const MatrixShape& matrix, BlockRange blocks,
                     const SignCompressOptions& options, absl::Span<const float> gradient,
                     absl::Span<float> momentum, absl::Span<uint16_t> positions,
                     absl::Span<float> values) {
    const TensorMomentum tensor = {.matrix = matrix,
                                   .blocks = blocks,
                                   .gradient = gradient,
                                   .momentum = momentum,
                                   .positions = positions,
                                   .values = values};
    CompressSigns(options, {tensor});
  }

  void FeedbackSigns(const MatrixShape& matrix, BlockRange blocks, int k,
                     absl::Span<const uint16_t> positions, absl::Span<const float> values,
                     absl::Span<float> momentum) {
    const auto m = arrays_[0].In(this, momentum);
    backend_->FeedbackSigns(matrix, blocks, k, arrays_[1].In(this, positions),
                            arrays_[2].In(this, values), m);
    Out<float>(m, momentum);
    Finish();
  }

  // DataLoss: the votes of a block break the rules.
  absl::Status ApplyVotes(const MatrixShape& matrix, BlockRange blocks,
                          const SignApplyOptions& options, const VotesView& votes,
                          absl::Span<float> parameters) {
    const VotesView view = {.offsets = arrays_[0].In(this, votes.offsets),
                            .positions = arrays_[1].In(this, votes.positions),
                            .values = arrays_[2].In(this, votes.values)};
    const auto p = arrays_[3].In(this, parameters);
    TwinArray<uint32_t> invalid = Word<uint32_t>(0xFF);
    backend_->ApplyVotes(matrix, blocks, options, view, p, invalid.device().data());
    Out<float>(p, parameters);
    invalid.CopyOut();
    Finish();
    return invalid.host()[0] == kAllBlocksValid ? absl::OkStatus() : absl::DataLossError("votes");
  }

  // DataLoss: the entries of a block break the rules.
  absl::Status ApplyDeltas(const MatrixShape& matrix, BlockRange blocks,
                           const DeltaApplyOptions& options, const DeltasView& result,
                           absl::Span<float> parameters) {
    const DeltasView view = {.offsets = arrays_[0].In(this, result.offsets),
                             .positions = arrays_[1].In(this, result.positions),
                             .signs = arrays_[2].In(this, result.signs),
                             .levels = arrays_[3].In(this, result.levels),
                             .codes = arrays_[4].In(this, result.codes)};
    const auto p = arrays_[5].In(this, parameters);
    TwinArray<uint32_t> invalid = Word<uint32_t>(0xFF);
    backend_->ApplyDeltas(matrix, blocks, options, view, p, invalid.device().data());
    Out<float>(p, parameters);
    invalid.CopyOut();
    Finish();
    return invalid.host()[0] == kAllBlocksValid ? absl::OkStatus() : absl::DataLossError("deltas");
  }

  void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
                 absl::Span<float> out) {
    const auto o = arrays_[2].In(this, out);
    backend_->Lookahead(eta, arrays_[0].In(this, parameters), arrays_[1].In(this, momentum), o);
    Out<float>(o, out);
    Finish();
  }

  uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) {
    TwinArray<uint64_t> sum = Word<uint64_t>(0);
    backend_->StateHash(first_index, arrays_[0].In(this, parameters), sum.device().data());
    sum.CopyOut();
    Finish();
    return sum.host()[0];
  }

  std::vector<double> RowSums(const MatrixShape& matrix, absl::Span<const float> gradient) {
    TwinArray<double> sums(device_.get());
    Must(sums.Resize(matrix.BlocksDown()));
    DeviceBuffer workspace(device_.get());
    Must(workspace.Reserve(backend_->RowSumsWorkspace(matrix) * sizeof(double)));
    backend_->RowSums(matrix, arrays_[0].In(this, gradient), static_cast<double*>(workspace.data()),
                      sums.device());
    sums.CopyOut();
    Finish();
    return {sums.host().begin(), sums.host().end()};
  }
  // Of the whole matrix: its rows' sums in order.
  double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) {
    const std::vector<double> sums = RowSums(matrix, gradient);
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

 private:
  // An array's copy on the device, with the same misalignment.
  class Copied {
   public:
    template <typename T>
    absl::Span<T> In(WaitingBackend* owner, absl::Span<T> host) {
      if (!owner->copies_) return host;
      if (buffer_ == nullptr) buffer_ = std::make_unique<DeviceBuffer>(owner->device_.get());
      const size_t shift = reinterpret_cast<uintptr_t>(host.data()) % 16;
      const size_t bytes = host.size() * sizeof(T);
      Must(buffer_->Reserve(bytes + 16));
      char* const device = static_cast<char*>(buffer_->data()) + shift;
      owner->device_->CopyIn(host.data(), bytes, device);
      return {reinterpret_cast<T*>(device), host.size()};
    }

   private:
    std::unique_ptr<DeviceBuffer> buffer_;
  };

  static void Must(const absl::Status& status) {
    if (!status.ok()) std::abort();
  }
  template <typename T>
  void Out(absl::Span<const T> device, absl::Span<T> host) {
    if (copies_) device_->CopyOut(device.data(), host.size() * sizeof(T), host.data());
  }
  template <typename T>
  TwinArray<T> Word(unsigned char byte) {
    TwinArray<T> word(device_.get());
    Must(word.Resize(1));
    word.Fill(byte);
    return word;
  }
  void Finish() { Must(device_->Finish()); }

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Backend> backend_;
  bool copies_;
  Copied arrays_[6];
};

}  // namespace distro::testing
